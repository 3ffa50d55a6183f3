#include "server/ingest/builder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/ingest/build_job.h"

namespace docmem::server {

Builder::Builder(BuilderParts parts, BuilderOptions options)
    : parts_(std::move(parts)), options_(options) {}

Builder::~Builder() = default;

std::string Builder::kv_dtype() const { return parts_.engine->IdentityOf({}, {}).kv_dtype; }

absl::StatusOr<Builder::Ticket> Builder::Ingest(IngestRequest request, bool detach,
                                                std::shared_ptr<BuildSink> sink) {
  return Start(std::make_shared<BuildJob>(this, std::move(request)), detach, std::move(sink));
}

absl::StatusOr<Builder::Ticket> Builder::BuildCaches(CacheBuildRequest request,
                                                     std::shared_ptr<BuildSink> sink) {
  return Start(std::make_shared<BuildJob>(this, std::move(request)), false, std::move(sink));
}

absl::StatusOr<Builder::Ticket> Builder::Start(JobPtr job, bool detach,
                                               std::shared_ptr<BuildSink> sink) {
  Ticket ticket;
  {
    store::MutexLock lock(&mutex_);
    if (!closed_.ok()) return closed_;
    std::deque<JobPtr>& jobs = jobs_[job->name()];
    for (const JobPtr& other : jobs) {
      if (!other->Equals(*job)) continue;
      ticket = {other, other->Join(detach, sink)};
      if (ticket.sink != 0) return ticket;
    }
    if (job_count_ >= options_.max_builds) {
      if (jobs.empty()) jobs_.erase(job->name());
      return Error(absl::StatusCode::kResourceExhausted, reason::kQueueFull,
                   absl::StrCat(job_count_, " documents wait to be built already, the limit is ",
                                options_.max_builds));
    }
    ++job_count_;
    jobs.push_back(job);
    ticket = {job, job->Join(detach, std::move(sink))};
    if (jobs.size() > 1) return ticket;
  }
  job->Start();
  return ticket;
}

void Builder::Leave(const Ticket& ticket) {
  if (ticket.job) std::static_pointer_cast<BuildJob>(ticket.job)->Leave(ticket.sink);
}

void Builder::Finished(const std::string& name) {
  JobPtr next;
  {
    store::MutexLock lock(&mutex_);
    std::deque<JobPtr>& jobs = jobs_[name];
    jobs.pop_front();
    --job_count_;
    if (jobs.empty()) {
      jobs_.erase(name);
      return;
    }
    next = jobs.front();
  }
  next->Start();
}

void Builder::Close(absl::Status status) {
  store::MutexLock lock(&mutex_);
  closed_ = std::move(status);
}

void Builder::Reopen() { Close(absl::OkStatus()); }

void Builder::EndAll(const absl::Status& status) {
  std::vector<JobPtr> all;
  {
    store::MutexLock lock(&mutex_);
    for (const auto& [name, jobs] : jobs_) all.insert(all.end(), jobs.begin(), jobs.end());
  }
  for (const JobPtr& job : all) job->Cancel(status);
}

uint32_t Builder::builds() const {
  store::MutexLock lock(&mutex_);
  return job_count_;
}

}  // namespace docmem::server
