#include "server/runtime/timer.h"

#include "absl/time/clock.h"

namespace docmem::server {

Timer::Timer() : thread_([this] { Run(); }) {}

Timer::~Timer() {
  {
    store::MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.Signal();
  }
  thread_.join();
}

Timer::Id Timer::At(absl::Time when, std::function<void()> callback) {
  store::MutexLock lock(&mutex_);
  const Id id = next_++;
  queue_.emplace(std::pair(when, id), std::move(callback));
  when_.emplace(id, when);
  wake_.Signal();
  return id;
}

void Timer::Cancel(Id id) {
  if (id == 0) return;  // what `running_` is while nothing runs
  std::function<void()> dropped;
  store::MutexLock lock(&mutex_);
  if (const auto it = when_.find(id); it != when_.end()) {
    const auto entry = queue_.find(std::pair(it->second, id));
    dropped = std::move(entry->second);
    queue_.erase(entry);
    when_.erase(it);
    return;
  }
  if (std::this_thread::get_id() == thread_.get_id()) return;
  while (running_ == id) idle_.Wait(&mutex_);
}

void Timer::Run() {
  store::MutexLock lock(&mutex_);
  while (!stopping_) {
    if (queue_.empty() || queue_.begin()->first.first == absl::InfiniteFuture()) {
      wake_.Wait(&mutex_);
      continue;
    }
    const absl::Time now = absl::Now();
    const auto first = queue_.begin();
    if (first->first.first > now) {
      wake_.WaitFor(&mutex_, first->first.first - now);
      continue;
    }
    running_ = first->first.second;
    std::function<void()> callback = std::move(first->second);
    when_.erase(running_);
    queue_.erase(first);
    mutex_.Unlock();
    callback();
    callback = nullptr;
    mutex_.Lock();
    running_ = 0;
    idle_.SignalAll();
  }
}

}  // namespace docmem::server
