#include "server/ingest/build_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/runtime/adapter_choice.h"

namespace docmem::server {
namespace {

using Phase = BuildProgress::Phase;

std::string JobName(const store::DocumentKey& key) {
  return absl::StrCat(key.collection, "/", key.id);
}

bool SameCompressions(const std::vector<engine::Compression>& a,
                      const std::vector<engine::Compression>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.ratio_ppm == y.ratio_ppm && x.profile == y.profile && x.seed == y.seed &&
           x.blend == y.blend && x.int8 == y.int8;
  });
}

}  // namespace

BuildJob::BuildJob(Builder* builder, IngestRequest request)
    : builder_(builder),
      name_(JobName(request.key)),
      ingests_(true),
      created_(absl::Now()),
      request_(std::move(request)) {}

BuildJob::BuildJob(Builder* builder, CacheBuildRequest request)
    : builder_(builder),
      name_(JobName(request.key)),
      ingests_(false),
      maker_(request.maker),
      created_(absl::Now()) {
  request_.key = std::move(request.key);
  request_.compressions = std::move(request.compressions);
  request_.system_text = std::move(request.system_text);
}

bool BuildJob::Equals(const BuildJob& other) const {
  const IngestRequest& a = request_;
  const IngestRequest& b = other.request_;
  // A cache build reads its text later, on another thread; it is of one document either way.
  const bool same_text = !ingests_ || a.text_sha256 == b.text_sha256;
  // Which adapter is current may change between two requests.
  const bool same_maker =
      maker_ == other.maker_ && (engine::UsesBaseCache(maker_.mode) || maker_.adapter_version != 0);
  const bool follows = a.when_ready || b.when_ready;  // what follows can't be compared
  return !follows && ingests_ == other.ingests_ && same_maker && same_text &&
         SameCompressions(a.compressions, b.compressions) && a.system_text == b.system_text &&
         a.title == b.title && a.labels == b.labels && a.pin == b.pin &&
         a.retain_text == b.retain_text && a.replace == b.replace && a.revision == b.revision;
}

uint64_t BuildJob::Join(bool detach, std::shared_ptr<BuildSink> sink) {
  store::MutexLock lock(&mutex_);
  if (closed_ || !cancel_status_.ok()) return 0;
  detached_ = detached_ || detach;
  const uint64_t id = next_sink_++;
  sink->OnProgress(progress_);
  sinks_.emplace(id, std::move(sink));
  return id;
}

void BuildJob::Leave(uint64_t sink) {
  {
    store::MutexLock lock(&mutex_);
    sinks_.erase(sink);
    if (!sinks_.empty() || detached_) return;
  }
  Cancel(Error(absl::StatusCode::kCancelled, reason::kClientGone,
               "the client left before the document was built"));
}

void BuildJob::Cancel(const absl::Status& status) {
  Memories::AcquireId acquire = 0;
  EngineLoop::Ticket work = 0;
  {
    store::MutexLock lock(&mutex_);
    if (closed_ || publishing_ || !cancel_status_.ok()) return;
    cancel_status_ = status;
    acquire = acquire_;
    work = work_;
  }
  stop_ = true;
  if (acquire != 0) builder_->parts_.memories->Cancel(acquire);
  if (work != 0) builder_->parts_.loop->Withdraw(work, status);
}

absl::Status BuildJob::cancelled() const {
  store::MutexLock lock(&mutex_);
  return cancel_status_;
}

void BuildJob::Start() {
  builder_->parts_.executor->Run([self = shared_from_this()] { self->Prepare(); });
  Heartbeat();
}

void BuildJob::Prepare() {
  result_.queue = absl::Now() - created_;
  Report(Phase::kTokenizing, 0.0);
  if (absl::Status status = cancelled(); !status.ok()) return Fail(status);

  std::optional<store::Document> existing;
  absl::StatusOr<store::Document> found = builder_->parts_.store->GetDocument(request_.key);
  if (found.ok()) {
    existing = *std::move(found);
  } else if (!ingests_ || !absl::IsNotFound(found.status())) {
    return Fail(found.status());
  }
  if (existing) document_ = *existing;
  if (!ingests_) {
    if (absl::Status status = ReadStored(); !status.ok()) return Fail(status);
  }
  const absl::Time began = absl::Now();
  if (absl::Status status = Encode(existing); !status.ok()) return Fail(status);
  result_.tokenize = absl::Now() - began;
  if (ingests_) {
    if (absl::Status status = Announce(); !status.ok()) return Fail(status);
  }
  ChooseMissing();
  if (missing_.empty()) {
    result_.document = document_;
    return Succeed();
  }
  adapter_ ? LeaseAdapter() : Prefill();
}

void BuildJob::LeaseAdapter() {
  Memories* const memories = builder_->parts_.memories;
  const Memories::AcquireId acquire = memories->AcquireAdapter(
      *adapter_, store::WhenFull::kWait,
      [self = shared_from_this()](absl::StatusOr<std::shared_ptr<const engine::Adapter>> adapter) {
        const absl::Status stopped = self->cancelled();
        if (!adapter.ok()) return self->Fail(stopped.ok() ? adapter.status() : stopped);
        self->loaded_adapter_ = *std::move(adapter);
        self->Prefill();
      });
  absl::Status late;
  {
    store::MutexLock lock(&mutex_);
    acquire_ = acquire;
    late = cancel_status_;
  }
  if (!late.ok()) memories->Cancel(acquire);
}

void BuildJob::Prefill() {
  stage_began_ = absl::Now();
  Report(Phase::kPrefilling, 0.0);
  const EngineLoop::Ticket work = builder_->parts_.loop->Post(shared_from_this());
  absl::Status late;
  {
    store::MutexLock lock(&mutex_);
    work_ = work;
    late = cancel_status_;
  }
  if (!late.ok()) builder_->parts_.loop->Withdraw(work, late);
}

absl::Status BuildJob::ReadStored() {
  if (document_.state != store::DocumentState::kReady) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kDocumentNotReady,
                 absl::StrCat("document '", request_.key.id, "' isn't ready"));
  }
  absl::StatusOr<std::string> text = builder_->parts_.store->ReadText(request_.key);
  if (!text.ok()) return text.status();
  request_.text = *std::move(text);
  request_.text_sha256 = document_.spec.text_sha256;
  if (engine::UsesBaseCache(maker_.mode)) return absl::OkStatus();
  absl::StatusOr<store::Adapter> adapter = ChooseAdapter(
      *builder_->parts_.store, builder_->parts_.engine->prompt_format(), document_,
      {.version = maker_.adapter_version, .allow_mismatch = maker_.allow_adapter_mismatch});
  if (adapter.ok()) adapter_ = *std::move(adapter);
  return adapter.status();
}

absl::Status BuildJob::Encode(const std::optional<store::Document>& existing) {
  const bool same_text = existing && existing->spec.text_sha256 == request_.text_sha256;
  system_text_ = request_.system_text.value_or(same_text ? existing->spec.system_text : "");
  absl::StatusOr<engine::Context> context = CatchEngine(
      [this] {
        return builder_->parts_.engine->EncodeContext(
            system_text_, request_.text, builder_->options_.question_reserve_tokens,
            [this] { return stop_.load(std::memory_order_relaxed); });
      },
      {.invalid_argument = reason::kContextTooLong});
  if (absl::Status status = cancelled(); !status.ok()) return status;
  if (!context.ok()) return context.status();
  context_ = *std::move(context);
  store::MutexLock lock(&mutex_);
  progress_.context_tokens = static_cast<uint32_t>(context_.ids.size());
  return absl::OkStatus();
}

absl::Status BuildJob::Announce() {
  store::DocumentSpec spec;
  spec.text_sha256 = request_.text_sha256;
  spec.text_bytes = request_.text.size();
  spec.title = request_.title;
  spec.labels = request_.labels;
  spec.pinned = request_.pin;
  spec.system_text = system_text_;
  absl::StatusOr<store::Document> document = builder_->parts_.store->BeginDocument(
      request_.key, spec, request_.replace ? request_.revision : 0);
  if (!document.ok()) return document.status();
  document_ = *std::move(document);
  announced_ = document_.state == store::DocumentState::kBuilding;
  replaces_ = !announced_ && document_.spec.text_sha256 != request_.text_sha256;
  return announced_ || replaces_ ? absl::OkStatus() : CheckOptions(document_);
}

absl::Status BuildJob::CheckOptions(const store::Document& document) const {
  const auto differs = [&](const char* field) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kOptionsDiffer,
                 absl::StrCat("the document exists with another value of '", field,
                              "'; change it with Update"),
                 {{"field", field}});
  };
  if (!request_.title.empty() && request_.title != document.spec.title) return differs("title");
  if (!request_.labels.empty() && request_.labels != document.spec.labels) {
    return differs("labels");
  }
  if (request_.pin && !document.spec.pinned) return differs("pin");
  if (request_.retain_text && *request_.retain_text != document.text.has_value()) {
    return differs("retain_text");
  }
  return absl::OkStatus();
}

void BuildJob::ChooseMissing() {
  std::vector<std::string> present;
  if (!announced_ && !replaces_) {
    for (const store::Cache& cache : document_.caches) {
      if (!cache.file.quarantined) present.push_back(cache.spec.id);
    }
  }
  const std::string adapter_hash = adapter_ ? adapter_->spec.hash : "";
  const auto contains = [](const std::vector<std::string>& ids, const std::string& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  for (const engine::Compression& compression : request_.compressions) {
    const std::string id =
        builder_->parts_.engine->IdentityOf(context_, compression, maker_.mode, adapter_hash)
            .Digest();
    if (contains(result_.cache_ids, id)) continue;
    result_.cache_ids.push_back(id);
    if (contains(present, id)) continue;
    missing_.push_back(compression);
    missing_ids_.push_back(id);
  }
}

bool BuildJob::Step() {
  if (!ingestion_) {
    ingestion_ = builder_->parts_.engine->StartIngestion(
        context_, missing_, {.mode = maker_.mode, .adapter = loaded_adapter_});
  }
  if (!ingestion_->Step()) {
    Report(Phase::kPrefilling, ingestion_->progress());
    return false;
  }
  caches_ = ingestion_->TakeCaches();
  return true;
}

void BuildJob::OnClosed(const absl::Status& status) {
  result_.score = ingestion_ ? absl::Seconds(ingestion_->score_seconds()) : absl::ZeroDuration();
  result_.prefill = absl::Now() - stage_began_ - result_.score;
  ingestion_.reset();
  loaded_adapter_.reset();
  absl::Status outcome = status;
  {
    store::MutexLock lock(&mutex_);
    if (outcome.ok()) outcome = cancel_status_;
    publishing_ = outcome.ok();
  }
  builder_->parts_.executor->Run([self = shared_from_this(), outcome] {
    outcome.ok() ? self->Publish() : self->Fail(outcome);
  });
}

void BuildJob::Heartbeat() {
  SendProgress();
  store::MutexLock lock(&mutex_);
  if (closed_) return;
  heartbeat_ = builder_->parts_.timer->At(absl::Now() + builder_->options_.heartbeat,
                                          [self = shared_from_this()] { self->Heartbeat(); });
}

void BuildJob::Report(BuildProgress::Phase phase, double fraction) {
  {
    store::MutexLock lock(&mutex_);
    progress_.phase = phase;
    progress_.fraction = fraction;
  }
  SendProgress();
}

void BuildJob::SendProgress() {
  store::MutexLock lock(&mutex_);
  progress_.elapsed = absl::Now() - created_;
  for (const auto& [id, sink] : sinks_) sink->OnProgress(progress_);
}

void BuildJob::Close(const absl::StatusOr<BuildResult>& result) {
  Timer::Id heartbeat = 0;
  std::map<uint64_t, std::shared_ptr<BuildSink>> sinks;
  {
    store::MutexLock lock(&mutex_);
    closed_ = true;
    heartbeat = heartbeat_;
    sinks.swap(sinks_);
  }
  for (const auto& [id, sink] : sinks) sink->OnClosed(result);
  builder_->parts_.timer->Cancel(heartbeat);
  builder_->Finished(name_);
}

}  // namespace docmem::server
