#include <utility>

#include "absl/time/clock.h"
#include "server/ingest/build_job.h"
#include "server/runtime/cache_artifact.h"

namespace docmem::server {

void BuildJob::Publish() {
  Report(BuildProgress::Phase::kPublishing, 0.0);
  const absl::Time began = absl::Now();
  absl::StatusOr<store::Document> document = PublishFiles();
  if (!document.ok()) return Fail(document.status());
  result_.publish = absl::Now() - began;

  BuildMeasures measures{.queue = result_.queue,
                         .tokenize = result_.tokenize,
                         .prefill = result_.prefill,
                         .score = result_.score,
                         .publish = result_.publish};
  for (const auto& cache : caches_) {
    const auto evicted = static_cast<uint64_t>(context_.ids.size()) - cache->kept_tokens();
    measures.evicted_tokens += evicted * cache->layers() * cache->kv_heads();
  }
  builder_->parts_.metrics->BuildFinished(measures);
  caches_.clear();
  SettleMemories(*document);
  result_.built_cache_ids = missing_ids_;
  result_.document = *std::move(document);
  Succeed();
}

void BuildJob::Succeed() {
  if (request_.when_ready) {
    absl::StatusOr<std::string> training = request_.when_ready(request_.key);
    if (!training.ok()) return Close(training.status());
    result_.training_id = *std::move(training);
  }
  Close(result_);
}

absl::StatusOr<store::Document> BuildJob::PublishFiles() {
  std::vector<store::NewCache> caches;
  for (const auto& cache : caches_) {
    caches.push_back(CacheArtifact(*builder_->parts_.engine, cache, system_text_));
  }
  store::AdapterStore* const store = builder_->parts_.store;
  if (!announced_ && !replaces_) {
    return store->PublishCaches(request_.key, request_.text_sha256, caches);
  }
  bool retain = true;
  if (request_.retain_text) {
    retain = *request_.retain_text;
  } else {
    absl::StatusOr<store::Collection> collection = store->GetCollection(request_.key.collection);
    if (!collection.ok()) return collection.status();
    retain = collection->settings.retain_text;
  }
  store::DocumentPublication publication;
  publication.key = request_.key;
  publication.row = document_.row;
  publication.replaces = replaces_ ? request_.revision : 0;
  publication.spec = {.text_sha256 = request_.text_sha256,
                      .text_bytes = request_.text.size(),
                      .title = request_.title,
                      .labels = request_.labels,
                      .pinned = request_.pin,
                      .system_text = system_text_};
  publication.document_tokens = static_cast<uint32_t>(context_.ids.size() - context_.head_tokens);
  publication.text = request_.text;
  publication.retain_text = retain;
  publication.caches = std::move(caches);
  return store->PublishDocument(publication);
}

void BuildJob::SettleMemories(const store::Document& document) {
  Memories* const memories = builder_->parts_.memories;
  if (replaces_) memories->ForgetDocument(document.key);
  if (!document.spec.pinned) return;
  absl::StatusOr<store::Adapter> adapter = absl::NotFoundError("no current adapter");
  if (document.current_adapter_version != 0) {
    adapter = builder_->parts_.store->GetAdapter(document.key, 0);
  }
  memories->SetPins(document, adapter.ok() ? &*adapter : nullptr);
}

void BuildJob::Fail(absl::Status status) {
  caches_.clear();
  if (announced_) {
    store::AdapterStore* const store = builder_->parts_.store;
    const absl::Status failed =
        store->FailDocument(request_.key, document_.row, std::string(status.message()));
    // Nobody waits for it any more: it goes as if it had never come.
    const absl::StatusOr<store::Document> left = store->GetDocument(request_.key);
    if (failed.ok() && !cancelled().ok() && left.ok() && left->row == document_.row) {
      status.Update(store->DeleteDocument(request_.key, left->revision));
    }
  }
  Close(status);
}

}  // namespace docmem::server
