#include "server/jobs/training_queue.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/jobs/training_codec.h"
#include "server/jobs/training_run.h"

namespace docmem::server {
namespace {

constexpr int64_t kTokensPerPair = 20;
constexpr int64_t kLeastPairs = 16;
constexpr int64_t kMostPairs = 500;

absl::Status Unknown(const std::string& id) {
  return Error(absl::StatusCode::kNotFound, reason::kJobNotFound,
               absl::StrCat("no training '", id.substr(0, 64), "'"));
}

absl::StatusOr<int64_t> RowOf(const std::string& id) {
  const int64_t row = RowOfTraining(id);
  if (row == 0) return Unknown(id);
  return row;
}

// What can't be read of a damaged row is left out.
TrainingReport ReportOf(const store::TrainingJob& job) {
  TrainingReport report{.id = TrainingId(job.id), .document = job.document, .created = job.created};
  if (auto stored = ReadTraining(job.request); stored.ok()) {
    report.request = std::move(stored->request);
    report.request.pairs.clear();
  }
  ReadReport(job.report, &report).IgnoreError();
  return report;
}

// Of a training that runs elsewhere. True when it has ended.
bool TellDifference(const TrainingReport& now, TrainingReport* told, TrainingSink* sink) {
  if (now.state != told->state) {
    sink->OnReport(now);
  } else if (now.step != told->step) {
    sink->OnStep({.step = now.step,
                  .total_steps = now.total_steps,
                  .loss = now.loss,
                  .holdout_loss = now.holdout_loss,
                  .tokens_per_second = now.tokens_per_second,
                  .remaining_seconds = now.remaining_seconds});
  }
  *told = now;
  return now.has_ended();
}

}  // namespace

TrainingQueue::TrainingQueue(TrainingParts parts, TrainingQueueOptions options)
    : parts_(std::move(parts)), options_(options) {}

TrainingQueue::~TrainingQueue() {
  Timer::Id timer = 0;
  {
    store::MutexLock lock(&mutex_);
    if (closed_.ok()) closed_ = absl::UnavailableError("the daemon stops");
    timer = timer_;
  }
  parts_.timer->Cancel(timer);
  store::MutexLock lock(&mutex_);
  while (polling_) polled_.Wait(&mutex_);
}

void TrainingQueue::Resume() {
  parts_.executor->Run([this] { ClaimNext(); });
  store::MutexLock lock(&mutex_);
  Schedule();
}

void TrainingQueue::Schedule() {
  timer_ = parts_.timer->At(absl::Now() + options_.poll_interval, [this] {
    store::MutexLock lock(&mutex_);
    if (!closed_.ok()) return;
    polling_ = true;
    parts_.executor->Run([this] { Poll(); });
  });
}

void TrainingQueue::Poll() {
  RunPtr run;
  bool due = false;
  {
    store::MutexLock lock(&mutex_);
    run = running_;
    due = absl::Now() - claimed_ >= options_.claim_time / 3;
  }
  if (!run) ClaimNext();
  if (run && due) KeepClaim(run);
  TellWaiting();
  store::MutexLock lock(&mutex_);
  polling_ = false;
  if (closed_.ok()) Schedule();
  polled_.SignalAll();
}

void TrainingQueue::ClaimNext() {
  {
    store::MutexLock lock(&mutex_);
    if (running_ || claiming_ || !closed_.ok()) return;
    claiming_ = true;
  }
  RunPtr run;
  for (;;) {
    absl::StatusOr<std::optional<store::TrainingJob>> job =
        parts_.store->ClaimTrainingJob(options_.claim_time);
    if (!job.ok()) {
      parts_.log->Warning("no training could be claimed",
                          {{"reason", std::string(job.status().message())}});
    }
    if (!job.ok() || !job->has_value()) break;
    if ((run = MakeRun(**std::move(job)))) break;
  }
  {
    store::MutexLock lock(&mutex_);
    claiming_ = false;
    if (!run || !closed_.ok()) return;  // the next start claims it again
    running_ = run;
    claimed_ = absl::Now();
    for (auto entry = waiting_.begin(); entry != waiting_.end();) {
      const bool its = entry->second.row == run->row();
      if (its) run->Watch(entry->first, std::move(entry->second.sink), &entry->second.told);
      entry = its ? waiting_.erase(entry) : std::next(entry);
    }
  }
  run->Start();
}

TrainingQueue::RunPtr TrainingQueue::MakeRun(store::TrainingJob job) {
  TrainingReport report = ReportOf(job);
  absl::StatusOr<StoredTraining> stored = ReadTraining(job.request);
  if (stored.ok()) {
    return std::make_shared<TrainingRun>(this, std::move(job), *std::move(stored),
                                         std::move(report));
  }
  report.state = TrainingState::kFailed;
  report.message = std::string(stored.status().message());
  const auto failed = parts_.store->UpdateTrainingJob(
      job.id, {.state = store::TrainingJobState::kFailed, .report = WriteReport(report)});
  if (!failed.ok()) {
    parts_.log->Warning(
        "a training's end couldn't be stored",
        {{"training", TrainingId(job.id)}, {"reason", std::string(failed.status().message())}});
  }
  return nullptr;
}

// While the registry is away it trains on: whoever claims it then comes to the same weights.
void TrainingQueue::KeepClaim(const RunPtr& run) {
  const absl::Status status =
      parts_.store->KeepTrainingJob(run->row(), options_.claim_time, WriteReport(run->report()));
  if (status.ok()) {
    store::MutexLock lock(&mutex_);
    claimed_ = absl::Now();
  } else if (absl::IsFailedPrecondition(status)) {
    run->CancelledElsewhere();
  } else if (absl::IsNotFound(status)) {
    run->DocumentGone();
  } else if (absl::IsAborted(status)) {
    run->Suspend(status);
  }
}

void TrainingQueue::TellWaiting() {
  std::map<int64_t, absl::StatusOr<TrainingReport>> reports;
  {
    store::MutexLock lock(&mutex_);
    for (const auto& [id, waiting] : waiting_) reports.emplace(waiting.row, TrainingReport());
  }
  for (auto& [row, report] : reports) {
    const absl::StatusOr<store::TrainingJob> job = parts_.store->GetTrainingJob(row);
    report = job.ok() ? absl::StatusOr<TrainingReport>(ReportOf(*job)) : job.status();
  }
  store::MutexLock lock(&mutex_);
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    Waiting& waiting = entry->second;
    const auto found = reports.find(waiting.row);
    bool ended = false;
    if (found != reports.end() && found->second.ok()) {
      ended = TellDifference(*found->second, &waiting.told, waiting.sink.get());
      if (ended) waiting.sink->OnClosed(absl::OkStatus());
    } else if (found != reports.end() && absl::IsNotFound(found->second.status())) {
      ended = true;  // with its document
      waiting.sink->OnClosed(found->second.status());
    }
    entry = ended ? waiting_.erase(entry) : std::next(entry);
  }
}

absl::Status TrainingQueue::CheckDocument(const store::Document& document) const {
  if (document.state != store::DocumentState::kReady) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kDocumentNotReady,
                 absl::StrCat("document '", document.key.id, "' isn't ready"));
  }
  if (!document.text) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kTextNotRetained,
                 absl::StrCat("the text of '", document.key.id,
                              "' isn't kept, so nothing can be trained on it; ingest it with its "
                              "text retained"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingReport> TrainingQueue::Start(const store::DocumentKey& document,
                                                    TrainingRequest request) {
  if (request.options.rank > options_.max_rank) {
    return InvalidField("options.rank",
                        absl::StrCat("is ", request.options.rank, ", this daemon takes at most ",
                                     options_.max_rank));
  }
  const absl::StatusOr<store::Document> found = parts_.store->GetDocument(document);
  if (!found.ok()) return found.status();
  if (absl::Status status = CheckDocument(*found); !status.ok()) return status;
  if (training::IsQa(request.options.supervision) && !request.synthetic_pairs) {
    request.synthetic_pairs =
        request.pairs.empty() ? DefaultSyntheticPairs(found->document_tokens) : 0;
  }
  {
    store::MutexLock lock(&mutex_);
    if (!closed_.ok()) return closed_;
  }
  const absl::StatusOr<uint64_t> open = parts_.store->CountOpenTrainingJobs();
  if (!open.ok()) return open.status();
  if (*open >= options_.max_open) {
    return Error(absl::StatusCode::kResourceExhausted, reason::kQueueFull,
                 absl::StrCat(*open, " trainings wait already, the limit is ", options_.max_open));
  }
  TrainingReport report{.qa_given = static_cast<uint32_t>(request.pairs.size())};
  StoredTraining stored{.request = std::move(request), .text_sha256 = found->spec.text_sha256};
  absl::StatusOr<store::TrainingJob> job =
      parts_.store->AddTrainingJob(document, WriteTraining(stored), WriteReport(report));
  if (!job.ok()) return job.status();
  report = ReportOf(*job);
  parts_.executor->Run([this] { ClaimNext(); });
  return report;
}

void TrainingQueue::Finished(int64_t row) {
  {
    store::MutexLock lock(&mutex_);
    if (!running_ || running_->row() != row) return;
    running_.reset();
  }
  parts_.executor->Run([this] { ClaimNext(); });
}

TrainingQueue::RunPtr TrainingQueue::Running(int64_t row) const {
  store::MutexLock lock(&mutex_);
  return running_ && running_->row() == row ? running_ : nullptr;
}

absl::StatusOr<TrainingReport> TrainingQueue::Get(const std::string& id) {
  const absl::StatusOr<int64_t> row = RowOf(id);
  if (!row.ok()) return row.status();
  if (const RunPtr run = Running(*row)) return run->report();
  const absl::StatusOr<store::TrainingJob> job = parts_.store->GetTrainingJob(*row);
  if (!job.ok()) return job.status();
  return ReportOf(*job);
}

absl::StatusOr<store::Page<TrainingReport>> TrainingQueue::List(const std::string& collection,
                                                                const std::string& document,
                                                                const store::PageRequest& page) {
  absl::StatusOr<store::Page<store::TrainingJob>> found =
      parts_.store->ListTrainingJobs(collection, document, page);
  if (!found.ok()) return found.status();
  store::Page<TrainingReport> jobs{.next_token = std::move(found->next_token)};
  for (const store::TrainingJob& job : found->items) {
    const RunPtr run = Running(job.id);
    jobs.items.push_back(run ? run->report() : ReportOf(job));
  }
  return jobs;
}

absl::StatusOr<TrainingReport> TrainingQueue::Cancel(const std::string& id) {
  const absl::StatusOr<int64_t> row = RowOf(id);
  if (!row.ok()) return row.status();
  if (const RunPtr run = Running(*row)) {
    if (absl::Status status = run->Cancel(); !status.ok()) return status;
    return run->report();
  }
  // It waits, or runs on another replica, which hears of it when it next says that it goes on.
  {
    store::MutexLock lock(&mutex_);
    if (!closed_.ok()) return closed_;
  }
  const absl::StatusOr<store::TrainingJob> job = parts_.store->GetTrainingJob(*row);
  if (!job.ok()) return job.status();
  TrainingReport report = ReportOf(*job);
  report.state = TrainingState::kCancelled;
  report.ended = absl::Now();
  const auto cancelled = parts_.store->UpdateTrainingJob(
      *row, {.state = store::TrainingJobState::kCancelled, .report = WriteReport(report)});
  if (absl::IsFailedPrecondition(cancelled.status())) return JobFinished(*row);
  if (!cancelled.ok()) return cancelled.status();
  return report;
}

absl::StatusOr<uint64_t> TrainingQueue::Watch(const std::string& id,
                                              std::shared_ptr<TrainingSink> sink) {
  const absl::StatusOr<int64_t> row = RowOf(id);
  if (!row.ok()) return row.status();
  const absl::StatusOr<store::TrainingJob> job = parts_.store->GetTrainingJob(*row);
  if (!job.ok()) return job.status();
  TrainingReport report = ReportOf(*job);
  store::MutexLock lock(&mutex_);
  if (!closed_.ok() && !report.has_ended()) return closed_;
  const uint64_t watcher = next_sink_++;
  if (running_ && running_->row() == *row && running_->Watch(watcher, sink, nullptr)) {
    return watcher;
  }
  sink->OnReport(report);
  if (report.has_ended()) {
    sink->OnClosed(absl::OkStatus());
    return 0;
  }
  waiting_[watcher] = {*row, std::move(sink), std::move(report)};
  return watcher;
}

void TrainingQueue::Leave(const std::string& id, uint64_t sink) {
  const RunPtr run = Running(RowOfTraining(id));
  if (run) run->Leave(sink);
  store::MutexLock lock(&mutex_);
  waiting_.erase(sink);
}

void TrainingQueue::EndAll(const absl::Status& status) {
  RunPtr run;
  std::map<uint64_t, Waiting> waiting;
  {
    store::MutexLock lock(&mutex_);
    closed_ = status;
    run = running_;
    waiting.swap(waiting_);
  }
  for (const auto& [id, watcher] : waiting) watcher.sink->OnClosed(status);
  if (run) run->Suspend(status);
}

uint32_t DefaultSyntheticPairs(int64_t document_tokens) {
  return static_cast<uint32_t>(
      std::clamp(document_tokens / kTokensPerPair, kLeastPairs, kMostPairs));
}

}  // namespace docmem::server
