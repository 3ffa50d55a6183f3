#include "server/query/scheduler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/own_kv.h"
#include "server/errors/error.h"
#include "server/query/live_question.h"

namespace docmem::server {

using Holds = LiveQuestion::Holds;
using Stage = LiveQuestion::Stage;

namespace {

// A collection that isn't there is told by the look-up.
QuestionLimits LimitsOf(store::AdapterStore& store, const std::string& collection) {
  const auto settings = store.GetCollectionSettings(collection);
  if (!settings.ok()) return {};
  return {settings->limits.max_in_flight, settings->limits.max_queued};
}

uint64_t MostKvBytes(const engine::Engine& engine, const ResolvedQuestion& resolved,
                     const Question& question) {
  const size_t answer = question.answer_to_score ? resolved.answer_ids.size() : question.max_tokens;
  const auto rows = static_cast<int64_t>(resolved.prompt_ids.size() + answer);
  return engine.KvBytes(engine::OwnKv::MostCapacity(rows));
}

}  // namespace

Scheduler::Scheduler(SchedulerParts parts, SchedulerOptions options)
    : parts_(std::move(parts)), options_(options), resolver_(parts_.engine, parts_.store) {}

Scheduler::~Scheduler() = default;

uint64_t Scheduler::QueueLimit(Priority priority) const {
  const uint64_t whole = options_.max_queue;
  return priority == Priority::kBatch ? std::max<uint64_t>(1, whole * 3 / 4) : whole;
}

absl::Duration Scheduler::DelayOf(Priority priority) const {
  return priority == Priority::kBatch ? options_.batch_delay : absl::ZeroDuration();
}

absl::Status Scheduler::CheckRoom(const Question& question) const {
  if (!closed_.ok()) return closed_;
  const LiveKey key(question.principal, question.request_id);
  if (live_.count(key) != 0) {
    return Error(absl::StatusCode::kAlreadyExists, reason::kRequestIdInUse,
                 absl::StrCat("request id '", question.request_id,
                              "' belongs to a question that is still being answered"),
                 {{"field", "request_id"}});
  }
  const uint64_t waiting = live_.size() - slots_used_;
  const uint64_t limit = QueueLimit(question.priority);
  if (waiting >= limit) {
    return Error(
        absl::StatusCode::kResourceExhausted, reason::kQueueFull,
        absl::StrCat(waiting, " questions wait already, the limit is ", limit, " of --max-queue ",
                     options_.max_queue, " at this question's priority"));
  }
  return absl::OkStatus();
}

absl::Status Scheduler::Submit(Question question, std::shared_ptr<AnswerSink> sink) {
  {
    store::MutexLock lock(&mutex_);
    if (absl::Status status = CheckRoom(question); !status.ok()) return status;
  }
  // Looked up only for those who would be let in.
  const QuestionLimits of_collection = LimitsOf(*parts_.store, question.document.collection);
  LivePtr live;
  {
    store::MutexLock lock(&mutex_);
    if (absl::Status status = CheckRoom(question); !status.ok()) return status;
    const LiveKey key(question.principal, question.request_id);
    live =
        std::make_shared<LiveQuestion>(this, std::move(question), next_arrival_++, std::move(sink));
    const auto& [principal, collection] = live->quota_holders();
    absl::Status status = quotas_.Check(principal, live->question().limits);
    if (status.ok()) status = quotas_.Check(collection, of_collection);
    if (!status.ok()) return status;
    for (const std::string& who : live->quota_holders()) quotas_.Enter(who);
    live_.emplace(key, live);
  }
  live->Advance(Stage::kResolving, [&] {
    live->deadline_timer = parts_.timer->At(live->question().deadline, [this, live] {
      EndLive(live, Error(absl::StatusCode::kDeadlineExceeded, reason::kDeadlinePassed,
                          "the question's deadline has passed"));
    });
  });
  live->heartbeat_timer =
      parts_.timer->At(absl::Now() + options_.heartbeat, [this, live] { Heartbeat(live); });
  parts_.executor->Run([this, live] { Resolve(live); });
  return absl::OkStatus();
}

void Scheduler::Resolve(const LivePtr& live) {
  if (live->stage() == Stage::kRetired) return;
  Resolved(live, resolver_.Resolve(live->question()));
}

void Scheduler::Resolved(const LivePtr& live, absl::StatusOr<ResolvedQuestion> resolved) {
  if (!resolved.ok()) return EndLive(live, resolved.status());
  const uint64_t kv_bytes = MostKvBytes(*parts_.engine, *resolved, live->question());
  if (kv_bytes > options_.kv_budget_bytes) {
    return EndLive(
        live, Error(absl::StatusCode::kInvalidArgument, reason::kLimitExceeded,
                    absl::StrCat("question and answer may take ", kv_bytes,
                                 " bytes of keys and values, the limit is ",
                                 options_.kv_budget_bytes, " (--kv-budget); ask for fewer tokens"),
                    {{"field", "max_tokens"}}));
  }
  const bool build = !resolved->cache;
  if (!live->Advance(build ? Stage::kBuilding : Stage::kResolving, [&] {
        live->resolved = *std::move(resolved);
        live->kv_bytes = kv_bytes;
      })) {
    return;
  }
  if (build) return BuildCache(live);
  Enqueue(live);
}

void Scheduler::BuildCache(const LivePtr& live) {
  // Document, mode and adapter are as admitted, also when others fit or become current meanwhile.
  Question admitted = live->question();
  admitted.document = live->resolved.document;
  admitted.mode = live->resolved.mode;
  admitted.adapter_version = live->resolved.adapter ? live->resolved.adapter->version : 0;
  CacheBuildRequest request;
  request.key = live->resolved.document;
  request.compressions = {
      {.ratio_ppm = live->resolved.ratio_ppm, .profile = live->resolved.profile}};
  request.maker = {.mode = live->resolved.mode,
                   .adapter_version = admitted.adapter_version,
                   .allow_adapter_mismatch = admitted.allow_adapter_mismatch};
  parts_.build_missing(
      std::move(request), [this, live, admitted = std::move(admitted)](absl::Status status) {
        if (!status.ok()) return EndLive(live, status);
        parts_.executor->Run([this, live, admitted] {
          absl::StatusOr<ResolvedQuestion> resolved = resolver_.Resolve(admitted);
          if (resolved.ok() && resolved->cache) {
            const store::CacheSpec& spec = resolved->cache->spec;
            live->Update(
                [&] { live->document_tokens_prefilled = spec.context_tokens - spec.head_tokens; });
          } else if (resolved.ok()) {
            resolved = Error(absl::StatusCode::kNotFound, reason::kCacheNotFound,
                             "the cache was deleted right after it had been built");
          }
          Resolved(live, std::move(resolved));
        });
      });
}

void Scheduler::Enqueue(const LivePtr& live) {
  const ResolvedQuestion& resolved = live->resolved;
  AnswerStarted started;
  started.request_id = live->question().request_id;
  started.document = resolved.document;
  started.cache_id = resolved.cache->spec.id;
  started.ratio_ppm = resolved.cache->spec.ratio_ppm;
  started.mode = resolved.mode;
  started.deadline = live->question().deadline;
  if (parts_.memories->IsLoaded(resolved.document, *resolved.cache)) {
    started.cache_tier = store::Tier::kDevice;
  }
  if (resolved.adapter) {
    started.adapter_version = resolved.adapter->version;
    started.adapter_hash = resolved.adapter->spec.hash;
    if (parts_.memories->IsLoaded(*resolved.adapter)) started.adapter_tier = store::Tier::kDevice;
  }
  live->Started(started);
  if (!live->Advance(Stage::kReady, [] {})) return;
  Queue(live, Holds::kNothing);
}

void Scheduler::Heartbeat(const LivePtr& live) {
  AnswerProgress progress;
  progress.elapsed = absl::Now() - live->admitted();
  switch (live->stage()) {
    case Stage::kSubmitting:
    case Stage::kRunning:
    case Stage::kRetired:
      return;
    case Stage::kBuilding:
      progress.phase = AnswerProgress::Phase::kBuildingCache;
      break;
    case Stage::kLoading:
      progress.phase = AnswerProgress::Phase::kLoading;
      break;
    case Stage::kResolving:
    case Stage::kReady:
      progress.queue_position = PositionOf(live);
      break;
  }
  live->Progress(progress);
  live->heartbeat_timer =
      parts_.timer->At(absl::Now() + options_.heartbeat, [this, live] { Heartbeat(live); });
}

uint32_t Scheduler::PositionOf(const LivePtr& live) const {
  store::MutexLock lock(&mutex_);
  uint32_t before = 0;
  for (const LivePtr& other : ready_) before += other->turn() < live->turn() ? 1 : 0;
  return before;
}

bool Scheduler::End(const std::string& principal, const std::string& request_id,
                    absl::Status status) {
  LivePtr live;
  {
    store::MutexLock lock(&mutex_);
    const auto it = live_.find(LiveKey(principal, request_id));
    if (it == live_.end()) return false;
    live = it->second;
  }
  EndLive(live, std::move(status));
  return true;
}

void Scheduler::EndLive(const LivePtr& live, absl::Status status) {
  switch (live->MarkEnded(status)) {
    case Stage::kRetired:
    case Stage::kSubmitting:  // `Run` sees the end as soon as it has the ticket
      return;
    case Stage::kRunning:
      parts_.loop->Cancel(live->ticket, std::move(status));
      return;
    case Stage::kLoading:
      if (live->acquire != 0) parts_.memories->Cancel(live->acquire);
      break;
    case Stage::kResolving:
    case Stage::kBuilding:
    case Stage::kReady:
      break;
  }
  Retire(live, status);
}

void Scheduler::Retire(const LivePtr& live, const absl::Status& status) {
  if (!live->Retire()) return;
  {
    // Before the caller hears of the end, so that it may use its request id again at once.
    store::MutexLock lock(&mutex_);
    live_.erase(LiveKey(live->question().principal, live->question().request_id));
    ready_.remove(live);
    for (const std::string& who : live->quota_holders()) {
      quotas_.Leave(who, live->holds != Holds::kSlot);
    }
    switch (std::exchange(live->holds, Holds::kNothing)) {
      case Holds::kNothing:
      case Holds::kMemories:
        break;
      case Holds::kLoad:
        --loading_;
        break;
      case Holds::kSlot:
        --slots_used_;
        kv_bytes_used_ -= live->kv_bytes;
        break;
    }
  }
  live->memories = {};
  live->CloseSink(status);
  parts_.timer->Cancel(live->deadline_timer);
  parts_.timer->Cancel(live->heartbeat_timer);
  if (status.ok()) parts_.metrics->AnswerFinished(live->finished().measures());
  Pump();
}

void Scheduler::Close(absl::Status status) {
  store::MutexLock lock(&mutex_);
  closed_ = std::move(status);
}

void Scheduler::Reopen() { Close(absl::OkStatus()); }

void Scheduler::EndAll(const absl::Status& status) {
  std::vector<LivePtr> all;
  {
    store::MutexLock lock(&mutex_);
    for (const auto& [key, live] : live_) all.push_back(live);
  }
  for (const LivePtr& live : all) EndLive(live, status);
}

QueueCounts Scheduler::Counts() const {
  store::MutexLock lock(&mutex_);
  QueueCounts counts;
  for (const auto& [key, live] : live_) {
    switch (live->stage()) {
      case Stage::kResolving:
      case Stage::kBuilding:
      case Stage::kReady:
        ++counts.waiting;
        break;
      case Stage::kLoading:
      case Stage::kSubmitting:
        ++counts.loading;
        break;
      case Stage::kRunning:
        ++counts.running;
        break;
      case Stage::kRetired:
        break;
    }
  }
  return counts;
}

}  // namespace docmem::server
