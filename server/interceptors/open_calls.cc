#include "server/interceptors/open_calls.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/errors/error.h"

namespace docmem::server {

OpenCalls::Id OpenCalls::Enter(absl::Time deadline, Cut cut) {
  Id id = 0;
  const bool watched = cut && deadline != absl::InfiniteFuture();
  {
    store::MutexLock lock(&mutex_);
    id = next_++;
    calls_[id].cut = std::move(cut);
  }
  if (!watched) return id;
  const Timer::Id timer = timer_->At(deadline, [this, id] {
    CutOne(id, Error(absl::StatusCode::kDeadlineExceeded, reason::kDeadlinePassed,
                     "the deadline passed"));
  });
  {
    store::MutexLock lock(&mutex_);
    if (const auto call = calls_.find(id); call != calls_.end()) {
      call->second.timer = timer;
      return id;
    }
  }
  timer_->Cancel(timer);
  return id;
}

void OpenCalls::Leave(Id id) {
  Entry entry;
  {
    store::MutexLock lock(&mutex_);
    const auto call = calls_.find(id);
    if (call == calls_.end()) return;
    entry = std::move(call->second);
    calls_.erase(call);
    changed_.SignalAll();
  }
  if (entry.timer != 0) timer_->Cancel(entry.timer);
}

void OpenCalls::CutOne(Id id, const absl::Status& status) {
  Cut cut;
  {
    store::MutexLock lock(&mutex_);
    const auto call = calls_.find(id);
    if (call != calls_.end()) cut = std::exchange(call->second.cut, nullptr);
  }
  if (cut) cut(status);
}

void OpenCalls::CutAll(const absl::Status& status) {
  std::vector<Cut> cuts;
  {
    store::MutexLock lock(&mutex_);
    for (auto& [id, call] : calls_) {
      if (call.cut) cuts.push_back(std::exchange(call.cut, nullptr));
    }
  }
  for (const Cut& cut : cuts) cut(status);
}

bool OpenCalls::WaitUntilEmpty(absl::Time deadline) {
  store::MutexLock lock(&mutex_);
  while (!calls_.empty()) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitFor(&mutex_, left);
  }
  return true;
}

size_t OpenCalls::count() const {
  store::MutexLock lock(&mutex_);
  return calls_.size();
}

}  // namespace docmem::server
