#include "server/interceptors/call.h"

#include <string>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors/error.h"
#include "server/errors/to_grpc.h"
#include "server/interceptors/trace_context.h"

namespace docmem::server {
namespace {

std::string DrawRequestId() {
  absl::BitGen random;
  return absl::StrCat(absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16),
                      absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16));
}

std::string TraceOf(const grpc::ServerContextBase& context) {
  const auto header = context.client_metadata().find("traceparent");
  if (header == context.client_metadata().end()) return "";
  return TraceIdOf({header->second.data(), header->second.size()});
}

}  // namespace

Call::Call(const ServiceContext& services, const Method& method,
           const grpc::CallbackServerContext* context)
    : services_(services),
      method_(method),
      arrived_(absl::Now()),
      caller_(services.guard->Identify(*context)),
      client_deadline_(context->deadline()) {
  const store::MutexLock lock(&mutex_);
  entry_ = {.peer = context->peer(),
            .method = method.label,
            .request_id = DrawRequestId(),
            .trace_id = TraceOf(*context)};
  if (caller_.ok()) entry_.principal = caller_->name;
}

Call::~Call() {
  bool finished = false;
  {
    store::MutexLock lock(&mutex_);
    finished = finished_;
  }
  if (!finished) Finish(Error(absl::StatusCode::kCancelled, reason::kClientGone, "client left"));
}

absl::Status Call::Admit(OpenCalls::Cut cut) {
  if (!caller_.ok()) return caller_.status();
  const absl::StatusOr<absl::Time> deadline =
      services_.guard->Admit(*caller_, client_deadline_, method_);
  if (!deadline.ok()) return deadline.status();
  deadline_ = *deadline;
  const OpenCalls::Id id = services_.open_calls->Enter(deadline_, std::move(cut));
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

void Call::About(const std::string& collection, const std::string& id) {
  const store::MutexLock lock(&mutex_);
  entry_.collection = collection;
  if (id.empty() || id == entry_.id) return;
  if (entry_.ids == 0) entry_.id = id;
  ++entry_.ids;
}

void Call::Named(const std::string& request_id) {
  const store::MutexLock lock(&mutex_);
  entry_.request_id = request_id;
}

grpc::Status Call::Finish(const absl::Status& status) {
  OpenCalls::Id open = 0;
  AuditEntry entry;
  {
    store::MutexLock lock(&mutex_);
    finished_ = true;
    open = std::exchange(open_, 0);
    entry = entry_;
  }
  entry.code = absl::StatusCodeToString(status.code());
  entry.reason = store::ReasonOf(status);
  entry.duration = absl::Now() - arrived_;
  services_.metrics->CallFinished(method_.label, method_.timed, status.code(), entry.duration);
  if (!status.ok()) LogFailure(status, entry);
  if (services_.audit != nullptr) services_.audit->Write(entry);
  if (open != 0) services_.open_calls->Leave(open);
  return ToGrpc(status);
}

void Call::LogFailure(const absl::Status& status, const AuditEntry& entry) const {
  const bool ours = status.code() == absl::StatusCode::kInternal ||
                    status.code() == absl::StatusCode::kUnknown ||
                    status.code() == absl::StatusCode::kDataLoss;
  const double seconds = absl::ToDoubleSeconds(entry.duration);
  if (!ours) {
    services_.log->Debug("request refused", {{"method", method_.label},
                                             {"code", entry.code},
                                             {"reason", entry.reason},
                                             {"request_id", entry.request_id},
                                             {"trace_id", entry.trace_id},
                                             {"seconds", seconds}});
    return;
  }
  services_.log->Error("request failed", {{"method", method_.label},
                                          {"code", entry.code},
                                          {"reason", entry.reason},
                                          {"request_id", entry.request_id},
                                          {"trace_id", entry.trace_id},
                                          {"message", std::string(status.message())},
                                          {"seconds", seconds}});
}

absl::Status ExecutorFull() {
  return Error(absl::StatusCode::kResourceExhausted, reason::kQueueFull,
               "too many requests at once; try again in a moment");
}

}  // namespace docmem::server
