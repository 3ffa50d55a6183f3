#include "server/interceptors/call.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "server/errors/error.h"
#include "server/errors/to_grpc.h"

namespace docmem::server {

Call::Call(const ServiceContext& services, const Method& method,
           const grpc::CallbackServerContext* context)
    : services_(services), method_(method), context_(context), arrived_(absl::Now()) {}

Call::~Call() {
  bool finished = false;
  {
    store::MutexLock lock(&mutex_);
    finished = finished_;
  }
  if (!finished) Finish(Error(absl::StatusCode::kCancelled, reason::kClientGone, "client left"));
}

absl::Status Call::Admit(OpenCalls::Cut cut) {
  absl::StatusOr<Admission> admission = services_.guard->Admit(*context_, method_);
  if (!admission.ok()) return admission.status();
  admission_ = *std::move(admission);
  const OpenCalls::Id id = services_.open_calls->Enter(admission_.deadline, std::move(cut));
  {
    store::MutexLock lock(&mutex_);
    if (!finished_) {
      open_ = id;
      return absl::OkStatus();
    }
  }
  services_.open_calls->Leave(id);  // it was cut before its number was known here
  return absl::OkStatus();
}

grpc::Status Call::Finish(const absl::Status& status) {
  OpenCalls::Id open = 0;
  {
    store::MutexLock lock(&mutex_);
    finished_ = true;
    open = std::exchange(open_, 0);
  }
  const absl::Duration duration = absl::Now() - arrived_;
  services_.metrics->CallFinished(method_.label, method_.timed, status.code(), duration);
  if (!status.ok()) LogFailure(status, duration);
  if (open != 0) services_.open_calls->Leave(open);
  return ToGrpc(status);
}

void Call::LogFailure(const absl::Status& status, absl::Duration duration) const {
  const std::string code = absl::StatusCodeToString(status.code());
  const std::string why = store::ReasonOf(status);
  const double seconds = absl::ToDoubleSeconds(duration);
  const bool ours = status.code() == absl::StatusCode::kInternal ||
                    status.code() == absl::StatusCode::kUnknown ||
                    status.code() == absl::StatusCode::kDataLoss;
  if (!ours) {
    services_.log->Debug(
        "request refused",
        {{"method", method_.label}, {"code", code}, {"reason", why}, {"seconds", seconds}});
    return;
  }
  services_.log->Error("request failed", {{"method", method_.label},
                                          {"code", code},
                                          {"reason", why},
                                          {"message", std::string(status.message())},
                                          {"seconds", seconds}});
}

absl::Status ExecutorFull() {
  return Error(absl::StatusCode::kResourceExhausted, reason::kQueueFull,
               "too many requests at once; try again in a moment");
}

}  // namespace docmem::server
