#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/clock.h"

namespace docmem::client {

/// How often and how fast a call is tried again. Which errors allow it at all is part of the wire
/// contract (docmem/v1/errors.proto) and fixed; so is the delay where the daemon names one.
struct RetryPolicy {
  /// False: every failure goes to the caller at once.
  bool enabled = true;
  /// Tries while the connection is lost, the first one included. Where the daemon itself asks for
  /// patience only the deadline counts.
  int max_attempts = 5;
  absl::Duration initial_backoff = absl::Milliseconds(100);  ///< doubles with every try
  absl::Duration max_backoff = absl::Seconds(2);
  /// A random part of at most this is added to every delay, so that clients don't return in step.
  double jitter = 0.25;
};

/// The connection is encrypted, and the daemon shows a certificate. Contents are PEM, not paths.
struct TlsOptions {
  std::string ca;           ///< whom to trust; empty: the system's authorities
  std::string certificate;  ///< of one's own, for a daemon that asks for one; goes with `key`
  std::string key;
  std::string server_name;  ///< expected in the daemon's certificate; empty: the address's host
};

struct ConnectionOptions {
  std::string address = "127.0.0.1:7600";  ///< HOST:PORT or [IPV6]:PORT
  std::string token;                       ///< sent as `authorization: Bearer …`; empty: none
  std::optional<TlsOptions> tls;           ///< unset: plain text
  /// Send the token in plain text to another address than loopback, where a network itself keeps
  /// others from reading along.
  bool insecure = false;
  RetryPolicy retry;
  std::shared_ptr<Clock> clock = Clock::Real();
};

/// Told before the wait that precedes another try.
struct RetryNotice {
  absl::Status why;
  absl::Duration delay;
  int attempt = 0;  ///< number of the try that failed, from 1
};

/// Of one call, all tries together.
struct CallOptions {
  /// Unset: 120 s for Ask and Score, 1 h for Ingest, BuildCache, Upload, Download, Export, Import
  /// and Prefetch with wait, none for Watch, 30 s for all else.
  std::optional<absl::Duration> timeout;
  /// A stop ends the call with CANCELLED from any thread.
  std::stop_token stop;
  std::function<void(const RetryNotice&)> on_retry;
};

}  // namespace docmem::client
