#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace docmem::server {

/// Files of the API's TLS, all in PEM.
struct TlsPaths {
  std::string certificate;  ///< the daemon's own first, then its chain; empty: no TLS
  std::string key;          ///< not encrypted
  std::string client_ca;    ///< empty: clients show no certificate
};

/// What those files hold, read and checked together.
struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string client_ca;
  absl::Time expires;  ///< when the first of the certificate and its chain ends
  bool operator==(const TlsMaterial&) const = default;
};

/// INVALID_ARGUMENT where a file isn't what it should be, key and certificate don't belong
/// together, or the certificate isn't valid at `now`; UNAVAILABLE where one can't be read. Messages
/// name flag and file and quote nothing of it.
absl::StatusOr<TlsMaterial> ReadTlsMaterial(const TlsPaths& paths, absl::Time now);

}  // namespace docmem::server
