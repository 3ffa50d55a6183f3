#include "server/services/prefetch.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "adapter_store/sync.h"
#include "server/errors/error.h"
#include "server/services/messages.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

constexpr int kMaxPrefetch = 100;

struct Wanted {
  store::DocumentKey document;
  store::Cache cache;
  std::optional<store::Adapter> adapter;
};

// Loads that are under way; shared with their callbacks, which may outlive the RPC.
class Pending {
 public:
  void Add() {
    store::MutexLock lock(&mutex_);
    ++running_;
  }

  void Done(const absl::Status& status) {
    store::MutexLock lock(&mutex_);
    first_error_.Update(status);
    --running_;
    changed_.SignalAll();
  }

  absl::Status Wait(absl::Time deadline) {
    store::MutexLock lock(&mutex_);
    while (running_ > 0) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) {
        return Error(absl::StatusCode::kDeadlineExceeded, reason::kDeadlinePassed,
                     "the deadline passed while memories were loading");
      }
      changed_.WaitFor(&mutex_, left);
    }
    return first_error_;
  }

  absl::Status first_error() {
    store::MutexLock lock(&mutex_);
    return first_error_;
  }

 private:
  store::Mutex mutex_;
  store::CondVar changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
};

absl::Status CheckRequest(const v1::PrefetchRequest& request) {
  if (request.documents().empty() || request.documents_size() > kMaxPrefetch) {
    return InvalidField(
        "documents", absl::StrCat("has ", request.documents_size(), " ids; 1 to 100 are allowed"));
  }
  if (!request.cache_id().empty() && request.documents_size() != 1) {
    return InvalidField("cache_id", "goes with exactly one document");
  }
  if (request.tier() != v1::TIER_UNSPECIFIED && request.tier() != v1::TIER_DEVICE) {
    return InvalidField(
        "tier", "must be TIER_DEVICE; the host tier, where there is one, is filled on the way");
  }
  return absl::OkStatus();
}

absl::StatusOr<Wanted> Find(Call& call, store::AdapterStore& store,
                            const v1::PrefetchRequest& request, const std::string& id) {
  absl::StatusOr<store::DocumentKey> key = CheckKey(call, request.collection(), id);
  if (!key.ok()) return key.status();
  absl::StatusOr<store::Document> document = store.GetDocument(*key);
  if (!document.ok()) return document.status();
  const std::string& cache_id =
      request.cache_id().empty() ? document->default_cache_id : request.cache_id();
  std::optional<Wanted> wanted;
  for (const store::Cache& cache : document->caches) {
    if (cache.spec.id == cache_id) wanted = Wanted{*key, cache, std::nullopt};
  }
  if (!wanted) {
    return Error(absl::StatusCode::kNotFound, reason::kCacheNotFound,
                 absl::StrCat("document '", id, "' has no such cache"));
  }
  if (request.adapter() && document->current_adapter_version != 0) {
    absl::StatusOr<store::Adapter> adapter = store.GetAdapter(*key, 0);
    if (!adapter.ok()) return adapter.status();
    wanted->adapter = *std::move(adapter);
  }
  return *std::move(wanted);
}

void Report(const Residency& residency, const Wanted& wanted, v1::PrefetchResponse* response) {
  v1::PrefetchResponse::Item* const cache = response->add_items();
  cache->set_document(wanted.document.id);
  cache->set_kind(v1::ARTIFACT_KIND_CACHE);
  cache->set_id(wanted.cache.spec.id);
  cache->set_bytes(wanted.cache.spec.device_bytes);
  const bool loaded = residency.IsLoaded(wanted.document, wanted.cache);
  cache->set_tier(loaded ? v1::TIER_DEVICE : v1::TIER_DISK);
  if (!wanted.adapter) return;
  v1::PrefetchResponse::Item* const adapter = response->add_items();
  adapter->set_document(wanted.document.id);
  adapter->set_kind(v1::ARTIFACT_KIND_ADAPTER);
  adapter->set_id(wanted.adapter->spec.hash);
  adapter->set_bytes(wanted.adapter->spec.device_bytes);
  adapter->set_tier(residency.IsLoaded(*wanted.adapter) ? v1::TIER_DEVICE : v1::TIER_DISK);
}

}  // namespace

absl::Status PrefetchDocuments(Call& call, store::AdapterStore& store, Residency& residency,
                               const v1::PrefetchRequest& request,
                               v1::PrefetchResponse* response) {
  if (absl::Status status = CheckRequest(request); !status.ok()) return status;
  std::vector<Wanted> all;
  for (const std::string& id : request.documents()) {
    absl::StatusOr<Wanted> wanted = Find(call, store, request, id);
    if (!wanted.ok()) return wanted.status();
    all.push_back(*std::move(wanted));
  }
  const auto pending = std::make_shared<Pending>();
  for (const Wanted& wanted : all) {
    pending->Add();
    residency.Prefetch(wanted.document, wanted.cache, wanted.adapter ? &*wanted.adapter : nullptr,
                       [pending](const absl::Status& status) { pending->Done(status); });
  }
  const absl::Status status = request.wait() ? pending->Wait(call.deadline()) : pending->first_error();
  if (!status.ok()) return status;
  for (const Wanted& wanted : all) Report(residency, wanted, response);
  return absl::OkStatus();
}

}  // namespace docmem::server
