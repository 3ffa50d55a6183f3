#include "client/clock.h"

#include <condition_variable>
#include <mutex>

#include "absl/time/clock.h"

namespace docmem::client {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }

  bool Sleep(absl::Duration duration, const std::stop_token& stop) override {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock<std::mutex> lock(mutex);
    wake.wait_for(lock, stop, absl::ToChronoNanoseconds(duration), [] { return false; });
    return !stop.stop_requested();
  }
};

}  // namespace

std::shared_ptr<Clock> Clock::Real() { return std::make_shared<RealClock>(); }

}  // namespace docmem::client
