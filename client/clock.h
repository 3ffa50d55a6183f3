#pragma once

#include <memory>
#include <stop_token>

#include "absl/time/time.h"

namespace docmem::client {

/// Time as retries see it, so that tests can move it by hand. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() = 0;
  /// Waits; false as soon as a stop is asked for.
  virtual bool Sleep(absl::Duration duration, const std::stop_token& stop) = 0;

  /// The machine's own.
  static std::shared_ptr<Clock> Real();
};

}  // namespace docmem::client
