#include "server/jobs/training_run.h"

#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "training/examples.h"

namespace docmem::server {
namespace {

constexpr char kCheckpointName[] = "checkpoint";

}  // namespace

absl::Status JobFinished(int64_t row) {
  return Error(absl::StatusCode::kFailedPrecondition, reason::kJobFinished,
               absl::StrCat("training '", TrainingId(row), "' has ended already"));
}

TrainingRun::TrainingRun(TrainingQueue* queue, store::TrainingJob job, StoredTraining stored,
                         TrainingReport report)
    : queue_(queue), job_(std::move(job)), stored_(std::move(stored)), report_(std::move(report)) {}

TrainingReport TrainingRun::report() const {
  store::MutexLock lock(&mutex_);
  return report_;
}

bool TrainingRun::Watch(uint64_t id, std::shared_ptr<TrainingSink> sink,
                        const TrainingReport* told) {
  store::MutexLock lock(&mutex_);
  if (closed_) return false;
  if (told == nullptr || told->state != report_.state) sink->OnReport(report_);
  sinks_.emplace(id, std::move(sink));
  return true;
}

void TrainingRun::Leave(uint64_t sink) {
  store::MutexLock lock(&mutex_);
  sinks_.erase(sink);
}

void TrainingRun::Start() {
  {
    store::MutexLock lock(&mutex_);
    if (closed_) return;
    started_ = true;
  }
  queue_->parts_.executor->Run([self = shared_from_this()] { self->Prepare(); });
}

absl::Status TrainingRun::Cancel() { return CancelRun(true); }

void TrainingRun::CancelledElsewhere() { CancelRun(false).IgnoreError(); }

void TrainingRun::DocumentGone() {
  {
    store::MutexLock lock(&mutex_);
    report_.message = "the document was deleted";
  }
  Cancel().IgnoreError();
}

absl::Status TrainingRun::CancelRun(bool end_row) {
  EngineLoop::Ticket work = 0;
  bool started = false;
  const absl::Status why = absl::CancelledError("the training was cancelled");
  {
    store::MutexLock lock(&mutex_);
    if (suspended_) return stop_status_;
    if (closed_ || storing_ || !stop_status_.ok()) return JobFinished(row());
    stop_status_ = why;
    work = work_;
    started = started_;
  }
  ChangeState(TrainingState::kCancelled);
  if (end_row) EndRow(store::TrainingJobState::kCancelled);  // before it could be claimed again
  if (work != 0) queue_->parts_.loop->Withdraw(work, why);
  if (!started) Close(absl::OkStatus());
  return absl::OkStatus();
}

void TrainingRun::Suspend(const absl::Status& why) {
  EngineLoop::Ticket work = 0;
  bool started = false;
  {
    store::MutexLock lock(&mutex_);
    if (closed_ || storing_ || !stop_status_.ok()) return;
    stop_status_ = why;
    suspended_ = true;
    work = work_;
    started = started_;
  }
  if (work != 0) queue_->parts_.loop->Withdraw(work, why);
  if (!started) Close(why);
}

absl::Status TrainingRun::stopped() const {
  store::MutexLock lock(&mutex_);
  return stop_status_;
}

void TrainingRun::Prepare() {
  if (const absl::Status status = ReadDocument(); !status.ok()) return Fail(status);
  ReadCheckpoint();
  {
    store::MutexLock lock(&mutex_);
    if (report_.started == absl::InfinitePast()) report_.started = absl::Now();
  }
  const bool writes_pairs = stored_.request.synthetic_pairs.value_or(0) > 0 && !stored_.synthesized;
  if (!writes_pairs) return MakeExamples();
  ChangeState(TrainingState::kSynthesizing);
  Post();
}

absl::Status TrainingRun::ReadDocument() {
  store::AdapterStore* const store = queue_->parts_.store;
  absl::StatusOr<store::Document> document = store->GetDocument(job_.document);
  if (!document.ok()) return document.status();
  if (document->row != job_.document_row || document->spec.text_sha256 != stored_.text_sha256) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kDocumentNotReady,
                 "the document's text has changed since the training was asked for");
  }
  absl::StatusOr<std::string> text = store->ReadText(job_.document);
  if (!text.ok()) return text.status();
  document_ = *std::move(document);
  absl::StatusOr<engine::Context> context = CatchEngine([&] {
    return queue_->parts_.engine->EncodeContext(document_.spec.system_text, *text,
                                                queue_->options_.question_reserve_tokens);
  });
  if (!context.ok()) return context.status();
  context_ = *std::move(context);
  return absl::OkStatus();
}

// Without one that can be read the training begins anew.
void TrainingRun::ReadCheckpoint() {
  if (!job_.checkpoint) return;
  checkpoint_.resize(job_.checkpoint->bytes);
  const absl::Status status = queue_->parts_.store->ReadFile(
      *job_.checkpoint, std::as_writable_bytes(std::span(checkpoint_)));
  if (!status.ok()) checkpoint_.clear();
}

void TrainingRun::Post() {
  absl::Status late = stopped();
  if (!late.ok()) return Fail(late);
  const EngineLoop::Ticket work =
      queue_->parts_.loop->Post(shared_from_this(), WorkUrgency::kBackground);
  {
    store::MutexLock lock(&mutex_);
    work_ = work;
    late = stop_status_;
  }
  if (!late.ok()) queue_->parts_.loop->Withdraw(work, late);
}

void TrainingRun::MakeExamples() {
  std::vector<training::QaPair> pairs = stored_.request.pairs;
  pairs.insert(pairs.end(), stored_.pairs.begin(), stored_.pairs.end());
  if (training::IsQa(options().supervision) && pairs.empty()) {
    return Fail(absl::FailedPreconditionError(
        "the base model wrote no question that the document answers; give pairs of your own"));
  }
  absl::StatusOr<std::vector<training::Example>> examples = CatchEngine([&] {
    return training::MakeExamples(
        options().supervision,
        {.engine = *queue_->parts_.engine, .context = context_, .pairs = pairs});
  });
  if (!examples.ok()) return Fail(examples.status());
  examples_ = *std::move(examples);
  trains_ = true;
  ChangeState(TrainingState::kTraining);
  const auto updated =
      queue_->parts_.store->UpdateTrainingJob(row(), {.state = store::TrainingJobState::kRunning,
                                                      .request = WriteTraining(stored_),
                                                      .report = WriteReport(report())});
  // On a full disk it trains all the same, as without checkpoints.
  if (!updated.ok() && !absl::IsResourceExhausted(updated.status())) {
    return Fail(updated.status());
  }
  Post();
}

void TrainingRun::OnClosed(const absl::Status& status) {
  absl::Status outcome = status;
  const bool trained = trainer_ != nullptr;
  bool suspended = false;
  {
    store::MutexLock lock(&mutex_);
    work_ = 0;
    if (outcome.ok()) outcome = stop_status_;
    storing_ = outcome.ok() && trained;
    suspended = suspended_;
  }
  if (suspended && trained) checkpoint_ = trainer_->Checkpoint();
  if (synthesis_ && outcome.ok()) {
    stored_.pairs = synthesis_->pairs();
    stored_.synthesized = true;
  }
  synthesis_.reset();
  trainer_.reset();
  queue_->parts_.executor->Run([self = shared_from_this(), outcome, trained] {
    if (!outcome.ok()) return self->Fail(outcome);
    trained ? self->StoreAdapter() : self->MakeExamples();
  });
}

void TrainingRun::StoreAdapter() {
  const absl::StatusOr<uint32_t> version = PublishAdapter();
  if (!version.ok()) return Fail(version.status());
  {
    store::MutexLock lock(&mutex_);
    report_.adapter_version = *version;
    report_.remaining_seconds = 0.0;
  }
  ChangeState(TrainingState::kSucceeded);
  EndRow(store::TrainingJobState::kSucceeded);
  Close(absl::OkStatus());
}

absl::StatusOr<uint32_t> TrainingRun::PublishAdapter() {
  const absl::StatusOr<store::Document> document = queue_->parts_.store->GetDocument(job_.document);
  if (!document.ok()) return document.status();
  if (document->row != job_.document_row || document->spec.text_sha256 != stored_.text_sha256) {
    return absl::AbortedError("the document's text was replaced while its adapter was trained");
  }
  AdapterUpload upload;
  upload.document = job_.document;
  upload.text_digest = stored_.text_sha256;
  upload.training_job_id = TrainingId(row());
  upload.keep_current = stored_.request.keep_current;
  upload.files = std::move(adapter_);
  const absl::StatusOr<store::Adapter> adapter = queue_->parts_.intake->Publish(std::move(upload));
  if (!adapter.ok()) return adapter.status();
  return adapter->version;
}

void TrainingRun::ChangeState(TrainingState state) {
  store::MutexLock lock(&mutex_);
  // A cancelled training may still be on its way to the next stage.
  if (report_.state == TrainingState::kCancelled) return;
  report_.state = state;
  if (report_.has_ended()) report_.ended = absl::Now();
  for (const auto& [id, sink] : sinks_) sink->OnReport(report_);
}

// A disk that is full costs nothing but the way back.
void TrainingRun::WriteCheckpoint(const std::string& checkpoint) {
  const absl::Status status = queue_->parts_.store->PublishTrainingCheckpoint(
      row(), store::FileFromMemory(kCheckpointName, std::as_bytes(std::span(checkpoint))),
      WriteReport(report()));
  if (absl::IsNotFound(status)) {
    DocumentGone();
  } else if (!status.ok() && !absl::IsFailedPrecondition(status)) {
    Warn("a training's checkpoint couldn't be stored", status);
  }
}

void TrainingRun::Warn(std::string_view what, const absl::Status& why) const {
  queue_->parts_.log->Warning(
      what, {{"training", TrainingId(row())}, {"reason", std::string(why.message())}});
}

// The row of a deleted document is gone with it.
void TrainingRun::EndRow(store::TrainingJobState state) {
  const auto ended = queue_->parts_.store->UpdateTrainingJob(
      row(), {.state = state, .report = WriteReport(report())});
  if (!ended.ok() && !absl::IsNotFound(ended.status())) {
    Warn("a training's end couldn't be stored", ended.status());
  }
}

void TrainingRun::Fail(const absl::Status& status) {
  bool suspended = false;
  bool cancelled = false;
  {
    store::MutexLock lock(&mutex_);
    suspended = suspended_;
    cancelled = !stop_status_.ok() && !suspended_;
    if (!suspended && !cancelled) report_.message = std::string(status.message());
  }
  if (suspended) {
    if (!checkpoint_.empty()) WriteCheckpoint(checkpoint_);
    return Close(stopped());
  }
  if (!cancelled) {
    ChangeState(TrainingState::kFailed);
    EndRow(store::TrainingJobState::kFailed);
  }
  Close(absl::OkStatus());
}

void TrainingRun::Close(const absl::Status& status) {
  std::map<uint64_t, std::shared_ptr<TrainingSink>> sinks;
  {
    store::MutexLock lock(&mutex_);
    closed_ = true;
    sinks.swap(sinks_);
  }
  for (const auto& [id, sink] : sinks) sink->OnClosed(status);
  queue_->Finished(row());
}

}  // namespace docmem::server
