#include "server/services/training_watch.h"

#include <utility>

#include "server/services/find_training.h"
#include "server/services/live_call.h"
#include "server/services/training_messages.h"
#include "server/services/validate.h"

namespace docmem::server {

TrainingWatch::Reactor* TrainingWatch::Start(const ServiceContext& services,
                                             const Late<Trainings>* trainings,
                                             grpc::CallbackServerContext* context,
                                             const v1::WatchTrainingRequest* request) {
  auto watch =
      std::shared_ptr<TrainingWatch>(new TrainingWatch(services, trainings, context, request));
  watch->self_ = watch;
  if (!services.executor->TryRun([watch] { watch->Begin(); })) watch->Close(ExecutorFull());
  return watch.get();
}

TrainingWatch::TrainingWatch(const ServiceContext& services, const Late<Trainings>* trainings,
                             grpc::CallbackServerContext* context,
                             const v1::WatchTrainingRequest* request)
    : trainings_(trainings),
      job_id_(request->job_id()),
      call_(services, method::kTrainingWatch, context),
      writer_(this, services.timer, [this] {
        Cut(Error(absl::StatusCode::kUnavailable, reason::kSlowClient,
                  "the client read nothing for 30 s"));
      }) {}

void TrainingWatch::Begin() {
  absl::Status status = call_.Admit([weak = weak_from_this()](const absl::Status& why) {
    if (const auto watch = weak.lock()) watch->Cut(why);
  });
  if (status.ok()) status = CheckId("job_id", job_id_);
  if (status.ok()) status = FindTraining(call_, **trainings_, job_id_).status();
  if (!status.ok()) return Close(status);
  const absl::StatusOr<uint64_t> sink = (*trainings_)->Watch(job_id_, shared_from_this());
  if (!sink.ok()) return Close(sink.status());
  {
    store::MutexLock lock(&mutex_);
    sink_ = *sink;
    if (!closed_) return;
  }
  (*trainings_)->Leave(job_id_, *sink);
}

void TrainingWatch::OnReport(const TrainingReport& report) {
  v1::TrainingEvent event;
  *event.mutable_job() = ToMessage(report);
  writer_.Push(std::move(event), [](v1::TrainingEvent*) { return false; });
}

void TrainingWatch::OnStep(const TrainingStep& step) {
  v1::TrainingEvent event;
  *event.mutable_step() = ToMessage(step);
  writer_.Push(event, [&event](v1::TrainingEvent* waiting) {
    if (!waiting->has_step() || waiting->step().has_holdout_loss()) return false;
    *waiting = event;
    return true;
  });
}

void TrainingWatch::OnClosed(const absl::Status& status) { Close(status); }

void TrainingWatch::Cut(const absl::Status& status) {
  uint64_t sink = 0;
  {
    store::MutexLock lock(&mutex_);
    sink = std::exchange(sink_, 0);
  }
  if (sink != 0) (*trainings_)->Leave(job_id_, sink);
  Close(status);
}

void TrainingWatch::Close(const absl::Status& status) {
  {
    store::MutexLock lock(&mutex_);
    if (std::exchange(closed_, true)) return;
  }
  writer_.Close(call_.Finish(status));
}

void TrainingWatch::OnWriteDone(bool ok) {
  if (!writer_.WriteDone(ok)) Cut(ClientGone());
}

void TrainingWatch::OnCancel() { Cut(ClientGone()); }

void TrainingWatch::OnDone() { self_.reset(); }

}  // namespace docmem::server
