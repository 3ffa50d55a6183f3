#include "server/jobs/training_queue.h"

#include <algorithm>

#include <utility>
#include <vector>

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

}  // namespace

TrainingQueue::TrainingQueue(TrainingParts parts, TrainingQueueOptions options)
    : parts_(std::move(parts)), options_(options) {}

TrainingQueue::~TrainingQueue() = default;

absl::Status TrainingQueue::Resume() {
  absl::StatusOr<std::vector<store::TrainingJob>> jobs = parts_.store->OpenTrainingJobs();
  if (!jobs.ok()) return jobs.status();
  std::vector<RunPtr> runs;
  for (store::TrainingJob& job : *jobs) {
    TrainingReport report = ReportOf(job);
    absl::StatusOr<StoredTraining> stored = ReadTraining(job.request);
    if (stored.ok()) {
      runs.push_back(std::make_shared<TrainingRun>(this, std::move(job), *std::move(stored),
                                                   std::move(report)));
      continue;
    }
    report.state = TrainingState::kFailed;
    report.message = std::string(stored.status().message());
    const auto failed = parts_.store->UpdateTrainingJob(
        job.id, {.state = store::TrainingJobState::kFailed, .report = WriteReport(report)});
    if (!failed.ok()) return failed.status();
  }
  for (RunPtr& run : runs) Add(std::move(run));
  return absl::OkStatus();
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
    if (open_.size() >= options_.max_open) {
      return Error(
          absl::StatusCode::kResourceExhausted, reason::kQueueFull,
          absl::StrCat(open_.size(), " trainings wait already, the limit is ", options_.max_open));
    }
  }
  TrainingReport report{.qa_given = static_cast<uint32_t>(request.pairs.size())};
  StoredTraining stored{.request = std::move(request), .text_sha256 = found->spec.text_sha256};
  absl::StatusOr<store::TrainingJob> job =
      parts_.store->AddTrainingJob(document, WriteTraining(stored), WriteReport(report));
  if (!job.ok()) return job.status();
  report = ReportOf(*job);
  Add(std::make_shared<TrainingRun>(this, *std::move(job), std::move(stored), report));
  return report;
}

void TrainingQueue::Add(RunPtr run) {
  {
    store::MutexLock lock(&mutex_);
    if (!closed_.ok()) return;  // the next start of the daemon goes on with it
    open_.emplace(run->row(), run);
    if (running_ != 0) return;
    running_ = run->row();
  }
  run->Start();
}

void TrainingQueue::Finished(int64_t row) {
  RunPtr next;
  {
    store::MutexLock lock(&mutex_);
    open_.erase(row);
    if (running_ != row) return;
    running_ = 0;
    if (open_.empty() || !closed_.ok()) return;
    next = open_.begin()->second;
    running_ = next->row();
  }
  next->Start();
}

TrainingQueue::RunPtr TrainingQueue::Find(int64_t row) const {
  store::MutexLock lock(&mutex_);
  const auto found = open_.find(row);
  return found == open_.end() ? nullptr : found->second;
}

absl::StatusOr<TrainingReport> TrainingQueue::Get(const std::string& id) {
  const absl::StatusOr<int64_t> row = RowOf(id);
  if (!row.ok()) return row.status();
  if (const RunPtr run = Find(*row)) return run->report();
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
    const RunPtr run = Find(job.id);
    jobs.items.push_back(run ? run->report() : ReportOf(job));
  }
  return jobs;
}

absl::StatusOr<TrainingReport> TrainingQueue::Cancel(const std::string& id) {
  const absl::StatusOr<int64_t> row = RowOf(id);
  if (!row.ok()) return row.status();
  if (const RunPtr run = Find(*row)) {
    if (absl::Status status = run->Cancel(); !status.ok()) return status;
    return run->report();
  }
  const absl::StatusOr<store::TrainingJob> job = parts_.store->GetTrainingJob(*row);
  if (!job.ok()) return job.status();
  store::MutexLock lock(&mutex_);
  // One that has not ended is without a run only when the daemon stops, which leaves it for the
  // next.
  if (!HasEnded(job->state) && !closed_.ok()) return closed_;
  return JobFinished(*row);
}

absl::StatusOr<uint64_t> TrainingQueue::Watch(const std::string& id,
                                              std::shared_ptr<TrainingSink> sink) {
  const absl::StatusOr<int64_t> row = RowOf(id);
  if (!row.ok()) return row.status();
  if (const RunPtr run = Find(*row)) {
    if (const uint64_t watcher = run->Watch(sink); watcher != 0) return watcher;
  }
  const absl::StatusOr<store::TrainingJob> job = parts_.store->GetTrainingJob(*row);
  if (!job.ok()) return job.status();
  sink->OnReport(ReportOf(*job));
  sink->OnClosed(absl::OkStatus());
  return 0;
}

void TrainingQueue::Leave(const std::string& id, uint64_t sink) {
  if (const RunPtr run = Find(RowOfTraining(id))) run->Leave(sink);
}

void TrainingQueue::EndAll(const absl::Status& status) {
  std::vector<RunPtr> runs;
  {
    store::MutexLock lock(&mutex_);
    closed_ = status;
    for (const auto& [row, run] : open_) runs.push_back(run);
  }
  for (const RunPtr& run : runs) run->Suspend(status);
}

uint32_t DefaultSyntheticPairs(int64_t document_tokens) {
  return static_cast<uint32_t>(
      std::clamp(document_tokens / kTokensPerPair, kLeastPairs, kMostPairs));
}

}  // namespace docmem::server
