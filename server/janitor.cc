#include "server/janitor.h"

#include <string>

#include "absl/time/clock.h"

namespace docmem::server {

Janitor::Janitor(Parts parts, absl::Duration interval) : parts_(parts), interval_(interval) {
  store::MutexLock lock(&mutex_);
  Schedule();
}

Janitor::~Janitor() {
  Timer::Id timer = 0;
  {
    store::MutexLock lock(&mutex_);
    stopping_ = true;
    timer = timer_;
  }
  parts_.timer->Cancel(timer);
  store::MutexLock lock(&mutex_);
  while (sweeping_) idle_.Wait(&mutex_);
}

void Janitor::Schedule() {
  timer_ = parts_.timer->At(absl::Now() + interval_, [this] {
    store::MutexLock lock(&mutex_);
    if (stopping_) return;
    sweeping_ = true;
    parts_.executor->Run([this] { Sweep(); });
  });
}

void Janitor::Sweep() {
  const absl::Status status = parts_.store->CollectGarbage();
  if (!status.ok()) {
    parts_.log->Warning("garbage not collected", {{"message", std::string(status.message())}});
  }
  store::MutexLock lock(&mutex_);
  sweeping_ = false;
  if (!stopping_) Schedule();
  idle_.SignalAll();
}

}  // namespace docmem::server
