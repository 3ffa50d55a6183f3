#include "server/services/prefetch.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/services/live_call.h"
#include "server/services/messages.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

constexpr int kMaxPrefetch = 100;

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

}  // namespace

grpc::ServerUnaryReactor* PrefetchCall::Start(const ServiceContext& services,
                                              const Late<store::AdapterStore>* store,
                                              const Late<Residency>* residency,
                                              grpc::CallbackServerContext* context,
                                              const v1::PrefetchRequest* request,
                                              v1::PrefetchResponse* response) {
  auto call = std::shared_ptr<PrefetchCall>(
      new PrefetchCall(services, store, residency, context, request, response));
  call->self_ = call;
  if (!services.executor->TryRun([call] { call->Begin(); })) call->End(ExecutorFull());
  return call.get();
}

PrefetchCall::PrefetchCall(const ServiceContext& services, const Late<store::AdapterStore>* store,
                           const Late<Residency>* residency, grpc::CallbackServerContext* context,
                           const v1::PrefetchRequest* request, v1::PrefetchResponse* response)
    : call_(services, method::kPrefetch, context),
      store_(store),
      residency_(residency),
      request_(request),
      response_(response),
      wait_(request->wait()) {}

void PrefetchCall::Begin() {
  absl::Status status = call_.Admit([weak = weak_from_this()](const absl::Status& why) {
    if (const auto call = weak.lock()) call->Cut(why);
  });
  if (status.ok()) status = CatchEngine([this] { return FindAll(); });
  {
    store::MutexLock lock(&mutex_);
    request_read_ = true;
    status.Update(cut_);
    open_loads_ = wanted_.size();
  }
  if (!status.ok()) return End(status);
  Load();
}

absl::Status PrefetchCall::FindAll() {
  if (absl::Status status = CheckRequest(*request_); !status.ok()) return status;
  for (const std::string& id : request_->documents()) {
    absl::StatusOr<Wanted> wanted = Find(id);
    if (!wanted.ok()) return wanted.status();
    wanted_.push_back(*std::move(wanted));
  }
  return absl::OkStatus();
}

absl::StatusOr<PrefetchCall::Wanted> PrefetchCall::Find(const std::string& id) {
  absl::StatusOr<store::DocumentKey> key = CheckKey(call_, request_->collection(), id);
  if (!key.ok()) return key.status();
  absl::StatusOr<store::Document> document = (*store_)->GetDocument(*key);
  if (!document.ok()) return document.status();
  const std::string& cache_id =
      request_->cache_id().empty() ? document->default_cache_id : request_->cache_id();
  std::optional<Wanted> wanted;
  for (const store::Cache& cache : document->caches) {
    if (cache.spec.id == cache_id) wanted = Wanted{*key, cache, std::nullopt};
  }
  if (!wanted) {
    return Error(absl::StatusCode::kNotFound, reason::kCacheNotFound,
                 absl::StrCat("document '", id, "' has no such cache"));
  }
  if (request_->adapter() && document->current_adapter_version != 0) {
    absl::StatusOr<store::Adapter> adapter = (*store_)->GetAdapter(*key, 0);
    if (!adapter.ok()) return adapter.status();
    wanted->adapter = *std::move(adapter);
  }
  return *std::move(wanted);
}

void PrefetchCall::Load() {
  for (const Wanted& wanted : wanted_) {
    (*residency_)
        ->Prefetch(
            wanted.document, wanted.cache, wanted.adapter ? &*wanted.adapter : nullptr,
            [self = shared_from_this()](const absl::Status& status) { self->Loaded(status); });
  }
  if (wait_) return;
  absl::Status failed_at_once;
  {
    store::MutexLock lock(&mutex_);
    failed_at_once = first_error_;
  }
  End(failed_at_once);
}

void PrefetchCall::Loaded(const absl::Status& status) {
  absl::Status outcome;
  {
    store::MutexLock lock(&mutex_);
    first_error_.Update(status);
    if (--open_loads_ > 0) return;
    outcome = first_error_;
  }
  End(outcome);
}

void PrefetchCall::Cut(const absl::Status& why) {
  {
    store::MutexLock lock(&mutex_);
    cut_.Update(why);
    if (!request_read_) return;  // gRPC frees the request behind the end: Begin ends the call then
  }
  End(why);
}

void PrefetchCall::End(const absl::Status& status) {
  {
    store::MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
  }
  if (status.ok()) {
    for (const Wanted& wanted : wanted_) Report(wanted);
  }
  Finish(call_.Finish(status));
}

void PrefetchCall::Report(const Wanted& wanted) {
  v1::PrefetchResponse::Item* const cache = response_->add_items();
  cache->set_document(wanted.document.id);
  cache->set_kind(v1::ARTIFACT_KIND_CACHE);
  cache->set_id(wanted.cache.spec.id);
  cache->set_bytes(wanted.cache.spec.device_bytes);
  const bool loaded = (*residency_)->IsLoaded(wanted.document, wanted.cache);
  cache->set_tier(loaded ? v1::TIER_DEVICE : v1::TIER_DISK);
  if (!wanted.adapter) return;
  v1::PrefetchResponse::Item* const adapter = response_->add_items();
  adapter->set_document(wanted.document.id);
  adapter->set_kind(v1::ARTIFACT_KIND_ADAPTER);
  adapter->set_id(wanted.adapter->spec.hash);
  adapter->set_bytes(wanted.adapter->spec.device_bytes);
  adapter->set_tier((*residency_)->IsLoaded(*wanted.adapter) ? v1::TIER_DEVICE : v1::TIER_DISK);
}

void PrefetchCall::OnCancel() { Cut(ClientGone()); }

void PrefetchCall::OnDone() { self_.reset(); }

}  // namespace docmem::server
