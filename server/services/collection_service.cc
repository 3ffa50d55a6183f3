#include "server/services/collection_service.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/errors/error.h"
#include "server/services/collection_settings.h"
#include "server/services/messages.h"
#include "server/services/unary.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

absl::Status Answer(const absl::StatusOr<store::Collection>& collection, v1::Collection* response) {
  if (collection.ok()) *response = ToMessage(*collection);
  return collection.status();
}

std::vector<store::DocumentKey> DocumentsOf(store::AdapterStore& store,
                                            const std::string& collection) {
  std::vector<store::DocumentKey> keys;
  store::PageRequest page{.size = 1000};
  do {
    const auto found = store.ListDocuments(collection, {}, page);
    if (!found.ok()) break;
    for (const store::Document& document : found->items) keys.push_back(document.key);
    page.token = found->next_token;
  } while (!page.token.empty());
  return keys;
}

// For those who may use only some: theirs in the order of names, the last one's name being the page
// token, so that neither pages nor tokens tell of others.
absl::Status ListAllowed(const AllowedCollections& allowed, store::AdapterStore& store,
                         const store::PageRequest& page, v1::ListCollectionsResponse* response) {
  const std::set<std::string>& names = allowed.names();
  if (!page.token.empty() && !names.contains(page.token)) {
    return InvalidField("page_token", "isn't one that List gave");
  }
  for (auto name = names.upper_bound(page.token); name != names.end(); ++name) {
    const auto collection = store.GetCollection(*name);
    if (store::ReasonOf(collection.status()) == reason::kCollectionNotFound) continue;
    if (!collection.ok()) return collection.status();
    if (response->collections_size() == static_cast<int>(page.size)) {
      response->set_next_page_token(response->collections().rbegin()->name());
      break;
    }
    *response->add_collections() = ToMessage(*collection);
  }
  return absl::OkStatus();
}

}  // namespace

// Here, so that the stubs' many templates are compiled in one file.
CollectionService::CollectionService(ServiceContext services,
                                     const Late<store::AdapterStore>* store,
                                     const Late<Residency>* residency)
    : services_(services), store_(store), residency_(residency) {}
CollectionService::~CollectionService() = default;

grpc::ServerUnaryReactor* CollectionService::Create(grpc::CallbackServerContext* context,
                                                    const v1::CreateCollectionRequest* request,
                                                    v1::Collection* response) {
  return RunUnary(services_, method::kCollectionCreate, context, [=, this](Call& call) {
    absl::Status status = CheckCollectionId(call, "name", request->name());
    store::CollectionSettings settings;
    if (status.ok()) status = ApplySettings(request->settings(), AllSettingsMask(), &settings);
    if (!status.ok()) return status;
    return Answer((*store_)->CreateCollection(request->name(), settings), response);
  });
}

grpc::ServerUnaryReactor* CollectionService::Get(grpc::CallbackServerContext* context,
                                                 const v1::GetCollectionRequest* request,
                                                 v1::Collection* response) {
  return RunUnary(services_, method::kCollectionGet, context, [=, this](Call& call) {
    if (absl::Status status = CheckCollectionId(call, "name", request->name()); !status.ok())
      return status;
    return Answer((*store_)->GetCollection(request->name()), response);
  });
}

grpc::ServerUnaryReactor* CollectionService::List(grpc::CallbackServerContext* context,
                                                  const v1::ListCollectionsRequest* request,
                                                  v1::ListCollectionsResponse* response) {
  return RunUnary(services_, method::kCollectionList, context, [=, this](Call& call) {
    const auto page = CheckPage(request->page_size(), request->page_token());
    if (!page.ok()) return page.status();
    const AllowedCollections& allowed = call.principal().collections;
    if (!allowed.all()) return ListAllowed(allowed, **store_, *page, response);
    absl::StatusOr<store::Page<store::Collection>> found = (*store_)->ListCollections(*page);
    if (!found.ok()) return found.status();
    for (const store::Collection& collection : found->items) {
      *response->add_collections() = ToMessage(collection);
    }
    response->set_next_page_token(std::move(found->next_token));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* CollectionService::Update(grpc::CallbackServerContext* context,
                                                    const v1::UpdateCollectionRequest* request,
                                                    v1::Collection* response) {
  return RunUnary(services_, method::kCollectionUpdate, context, [=, this](Call& call) {
    if (absl::Status status = CheckCollectionId(call, "name", request->name()); !status.ok())
      return status;
    const auto edit = [&](store::CollectionSettings& settings) {
      return ApplySettings(request->settings(), request->update_mask(), &settings);
    };
    return Answer((*store_)->UpdateCollection(request->name(), request->revision(), edit),
                  response);
  });
}

grpc::ServerUnaryReactor* CollectionService::Delete(grpc::CallbackServerContext* context,
                                                    const v1::DeleteCollectionRequest* request,
                                                    v1::DeleteCollectionResponse* response) {
  return RunUnary(services_, method::kCollectionDelete, context, [=, this](Call& call) {
    if (absl::Status status = CheckCollectionId(call, "name", request->name()); !status.ok())
      return status;
    store::AdapterStore& store = **store_;
    std::vector<store::DocumentKey> documents;
    if (request->force()) documents = DocumentsOf(store, request->name());
    const absl::StatusOr<uint32_t> deleted =
        store.DeleteCollection(request->name(), request->force());
    if (absl::IsNotFound(deleted.status()) && request->allow_missing()) return absl::OkStatus();
    if (!deleted.ok()) return deleted.status();
    for (const store::DocumentKey& document : documents) (*residency_)->ForgetDocument(document);
    response->set_deleted_documents(*deleted);
    return absl::OkStatus();
  });
}

}  // namespace docmem::server
