#pragma once

#include <mutex>
#include <vector>

#include "client/clock.h"

namespace docmem::client::testing {

/// Time that moves only when somebody sleeps. Remembers every sleep.
class FakeClock final : public Clock {
 public:
  absl::Time Now() override {
    const std::lock_guard lock(mutex_);
    return now_;
  }

  bool Sleep(absl::Duration duration, const std::stop_token& stop) override {
    const std::lock_guard lock(mutex_);
    if (stop.stop_requested()) return false;
    now_ += duration;
    sleeps_.push_back(duration);
    return true;
  }

  std::vector<absl::Duration> sleeps() const {
    const std::lock_guard lock(mutex_);
    return sleeps_;
  }

 private:
  mutable std::mutex mutex_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::vector<absl::Duration> sleeps_;
};

}  // namespace docmem::client::testing
