#include "server/runtime/executor.h"

#include <pthread.h>

#include <utility>

namespace docmem::server {

Executor::Executor(const Options& options) : max_queued_(options.max_queued) {
  threads_.reserve(options.threads);
  for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { Work(); });
}

Executor::~Executor() { Close(); }

bool Executor::TryRun(Task task) {
  store::MutexLock lock(&mutex_);
  if (closed_ || queue_.size() >= max_queued_) return false;
  queue_.push_back(std::move(task));
  wake_.Signal();
  return true;
}

void Executor::Run(Task task) {
  {
    store::MutexLock lock(&mutex_);
    if (!closed_) {
      queue_.push_back(std::move(task));
      wake_.Signal();
      return;
    }
  }
  task();
}

void Executor::Close() {
  {
    store::MutexLock lock(&mutex_);
    closed_ = true;
    wake_.SignalAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

size_t Executor::queued() const {
  store::MutexLock lock(&mutex_);
  return queue_.size();
}

void Executor::Work() {
  pthread_setname_np(pthread_self(), "docmem-worker");  // what `top -H` shows
  for (;;) {
    Task task;
    {
      store::MutexLock lock(&mutex_);
      while (queue_.empty() && !closed_) wake_.Wait(&mutex_);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

}  // namespace docmem::server
