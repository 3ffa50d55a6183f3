#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "adapter_store/sync.h"
#include "server/errors/error.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/query/asker.h"

namespace docmem::server {

/// The question behind an open Ask or Score: handed in once, and ended from outside at any moment,
/// also while it is being handed in. Thread-safe.
class LiveCall {
 public:
  explicit LiveCall(const Late<Asker>* asker) : asker_(asker) {}

  /// On failure the sink is never called. A question that was ended before isn't handed in.
  absl::Status Submit(Question question, std::shared_ptr<AnswerSink> sink) {
    {
      store::MutexLock lock(&mutex_);
      if (!ended_.ok()) return ended_;
      principal_ = question.principal;
      request_id_ = question.request_id;
    }
    absl::Status status = (*asker_)->Submit(std::move(question), std::move(sink));
    if (!status.ok()) return status;
    absl::Status ended;
    {
      store::MutexLock lock(&mutex_);
      submitted_ = true;
      ended = ended_;
    }
    if (!ended.ok()) EndQuestion(ended);
    return absl::OkStatus();
  }

  /// The sink is closed with `status` unless the question has ended already, or is closed never
  /// because it wasn't handed in yet: then `Submit` returns `status`.
  void End(const absl::Status& status) {
    {
      store::MutexLock lock(&mutex_);
      if (!ended_.ok()) return;
      ended_ = status;
      if (!submitted_) return;
    }
    EndQuestion(status);
  }

  /// From the sink's `OnClosed`: later ends find nothing to end.
  void Closed() {
    store::MutexLock lock(&mutex_);
    if (ended_.ok()) ended_ = absl::CancelledError("closed");
  }

 private:
  void EndQuestion(const absl::Status& status) {
    std::string principal;
    std::string request_id;
    {
      store::MutexLock lock(&mutex_);
      principal = principal_;
      request_id = request_id_;
    }
    (*asker_)->End(principal, request_id, status);
  }

  const Late<Asker>* const asker_;
  store::Mutex mutex_;
  std::string principal_ ABSL_GUARDED_BY(mutex_);
  std::string request_id_ ABSL_GUARDED_BY(mutex_);
  bool submitted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
};

inline absl::Status ClientGone() {
  return Error(absl::StatusCode::kCancelled, reason::kClientGone, "the client left");
}

}  // namespace docmem::server
