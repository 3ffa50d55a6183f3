#include "server/services/adapter_service.h"

#include <utility>

#include "server/errors/error.h"
#include "server/services/adapter_download.h"
#include "server/services/adapter_upload.h"
#include "server/services/messages.h"
#include "server/services/unary.h"
#include "server/services/validate.h"

namespace docmem::server {

using UploadStream = ClientStream<v1::UploadAdapterRequest, v1::Adapter>;
using DownloadStream = ServerStream<v1::DownloadAdapterResponse>;

// Here, so that the stubs' many templates are compiled in one file.
AdapterService::AdapterService(ServiceContext services, Parts parts)
    : services_(services), parts_(parts) {}
AdapterService::~AdapterService() = default;

grpc::ServerReadReactor<v1::UploadAdapterRequest>* AdapterService::Upload(
    grpc::CallbackServerContext* context, v1::Adapter* response) {
  return UploadStream::Start(
      services_, method::kAdapterUpload, context, response,
      [this](Call& call) { return std::make_unique<AdapterUploadSink>(parts_.intake, &call); });
}

grpc::ServerUnaryReactor* AdapterService::Get(grpc::CallbackServerContext* context,
                                              const v1::GetAdapterRequest* request,
                                              v1::Adapter* response) {
  return RunUnary(services_, method::kAdapterGet, context, [=, this](Call& call) {
    const auto key = CheckKey(call, request->collection(), request->document());
    if (!key.ok()) return key.status();
    const auto adapter = (*parts_.store)->GetAdapter(*key, request->version());
    if (adapter.ok()) *response = ToMessage(*adapter);
    return adapter.status();
  });
}

grpc::ServerUnaryReactor* AdapterService::List(grpc::CallbackServerContext* context,
                                               const v1::ListAdaptersRequest* request,
                                               v1::ListAdaptersResponse* response) {
  return RunUnary(services_, method::kAdapterList, context, [=, this](Call& call) {
    const auto key = CheckKey(call, request->collection(), request->document());
    if (!key.ok()) return key.status();
    const auto page = CheckPage(request->page_size(), request->page_token());
    if (!page.ok()) return page.status();
    auto found = (*parts_.store)->ListAdapters(*key, *page);
    if (!found.ok()) return found.status();
    for (const store::Adapter& adapter : found->items) {
      *response->add_adapters() = ToMessage(adapter);
    }
    response->set_next_page_token(std::move(found->next_token));
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::DownloadAdapterResponse>* AdapterService::Download(
    grpc::CallbackServerContext* context, const v1::DownloadAdapterRequest* request) {
  using Source = std::unique_ptr<MessageSource<v1::DownloadAdapterResponse>>;
  return DownloadStream::Start(
      services_, method::kAdapterDownload, context,
      [this, request = *request](Call& call) -> absl::StatusOr<Source> {
        const auto key = CheckKey(call, request.collection(), request.document());
        if (!key.ok()) return key.status();
        store::AdapterStore* const store = parts_.store->get();
        auto adapter = store->GetAdapter(*key, request.version());
        if (!adapter.ok()) return adapter.status();
        return std::make_unique<AdapterDownloadSource>(store, *std::move(adapter));
      });
}

grpc::ServerUnaryReactor* AdapterService::SetCurrent(grpc::CallbackServerContext* context,
                                                     const v1::SetCurrentAdapterRequest* request,
                                                     v1::SetCurrentAdapterResponse* response) {
  return RunUnary(services_, method::kAdapterSetCurrent, context, [=, this](Call& call) {
    const auto key = CheckKey(call, request->collection(), request->document());
    if (!key.ok()) return key.status();
    const auto change =
        (*parts_.store)->SetCurrentAdapter(*key, request->version(), request->revision());
    if (!change.ok()) return change.status();
    RefreshPins(*key);
    response->set_previous_version(change->previous_version);
    response->set_current_version(change->current_version);
    response->set_revision(change->document_revision);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdapterService::Delete(grpc::CallbackServerContext* context,
                                                 const v1::DeleteAdapterRequest* request,
                                                 v1::DeleteAdapterResponse* response) {
  return RunUnary(services_, method::kAdapterDelete, context, [=, this](Call& call) {
    const auto key = CheckKey(call, request->collection(), request->document());
    if (!key.ok()) return key.status();
    if (request->version() == 0) return InvalidField("version", "is required, from 1");
    store::AdapterStore& store = **parts_.store;
    const auto document = store.GetDocument(*key);
    const auto adapter = store.GetAdapter(*key, request->version());
    const auto deleted = store.DeleteAdapter(*key, request->version());
    if (absl::IsNotFound(deleted.status()) && request->allow_missing()) return absl::OkStatus();
    if (!deleted.ok()) return deleted.status();
    response->set_deleted(true);
    response->set_deleted_caches(*deleted);
    if (!adapter.ok() || !document.ok()) return absl::OkStatus();
    (*parts_.residency)->Forget(*adapter);
    for (const store::Cache& cache : document->caches) {
      const std::string& hash = adapter->spec.hash;
      if (cache.spec.writer_adapter_hash == hash || cache.spec.scorer_adapter_hash == hash) {
        (*parts_.residency)->Forget(*key, cache);
      }
    }
    return absl::OkStatus();
  });
}

void AdapterService::RefreshPins(const store::DocumentKey& key) const {
  const auto document = (*parts_.store)->GetDocument(key);
  if (!document.ok() || !document->spec.pinned) return;
  const auto current = (*parts_.store)->GetAdapter(key, 0);
  (*parts_.residency)->SetPins(*document, current.ok() ? &*current : nullptr);
}

}  // namespace docmem::server
