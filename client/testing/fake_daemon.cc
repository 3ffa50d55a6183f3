#include "client/testing/fake_daemon.h"

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace docmem::client::testing {
namespace {

using grpc::ServerContext;
using grpc::ServerReader;
using grpc::ServerWriter;
using grpc::Status;

class Query final : public v1::QueryService::Service {
 public:
  explicit Query(const FakeHandlers* handlers) : handlers_(*handlers) {}
  Status Ask(ServerContext* context, const v1::AskRequest* request,
             ServerWriter<v1::AskResponse>* writer) override {
    return handlers_.ask(context, *request, writer);
  }
  Status Score(ServerContext* context, const v1::ScoreRequest* request,
               v1::ScoreResponse* response) override {
    return handlers_.score(context, *request, response);
  }
  Status Abort(ServerContext* context, const v1::AbortRequest* request,
               v1::AbortResponse* response) override {
    return handlers_.abort(context, *request, response);
  }

 private:
  const FakeHandlers& handlers_;
};

class Document final : public v1::DocumentService::Service {
 public:
  explicit Document(const FakeHandlers* handlers) : handlers_(*handlers) {}
  Status Ingest(ServerContext* context,
                grpc::ServerReaderWriter<v1::IngestResponse, v1::IngestRequest>* stream) override {
    return handlers_.ingest(context, stream);
  }
  Status Get(ServerContext* context, const v1::GetDocumentRequest* request,
             v1::Document* response) override {
    return handlers_.get_document(context, *request, response);
  }
  Status List(ServerContext* context, const v1::ListDocumentsRequest* request,
              v1::ListDocumentsResponse* response) override {
    return handlers_.list_documents(context, *request, response);
  }
  Status Update(ServerContext* context, const v1::UpdateDocumentRequest* request,
                v1::Document* response) override {
    return handlers_.update_document(context, *request, response);
  }
  Status Delete(ServerContext* context, const v1::DeleteDocumentRequest* request,
                v1::DeleteDocumentResponse* response) override {
    return handlers_.delete_document(context, *request, response);
  }
  Status GetText(ServerContext* context, const v1::GetTextRequest* request,
                 ServerWriter<v1::GetTextResponse>* writer) override {
    return handlers_.get_text(context, *request, writer);
  }
  Status Prefetch(ServerContext* context, const v1::PrefetchRequest* request,
                  v1::PrefetchResponse* response) override {
    return handlers_.prefetch(context, *request, response);
  }
  Status BuildCache(ServerContext* context, const v1::BuildCacheRequest* request,
                    ServerWriter<v1::BuildCacheResponse>* writer) override {
    return handlers_.build_cache(context, *request, writer);
  }
  Status DeleteCache(ServerContext* context, const v1::DeleteCacheRequest* request,
                     v1::DeleteCacheResponse* response) override {
    return handlers_.delete_cache(context, *request, response);
  }
  Status Export(ServerContext* context, const v1::ExportDocumentRequest* request,
                ServerWriter<v1::ExportDocumentResponse>* writer) override {
    return handlers_.export_document(context, *request, writer);
  }
  Status Import(ServerContext* context, ServerReader<v1::ImportDocumentRequest>* reader,
                v1::Document* response) override {
    return handlers_.import_document(context, reader, response);
  }

 private:
  const FakeHandlers& handlers_;
};

class Adapter final : public v1::AdapterService::Service {
 public:
  explicit Adapter(const FakeHandlers* handlers) : handlers_(*handlers) {}
  Status Upload(ServerContext* context, ServerReader<v1::UploadAdapterRequest>* reader,
                v1::Adapter* response) override {
    return handlers_.upload(context, reader, response);
  }
  Status List(ServerContext* context, const v1::ListAdaptersRequest* request,
              v1::ListAdaptersResponse* response) override {
    return handlers_.list_adapters(context, *request, response);
  }
  Status SetCurrent(ServerContext* context, const v1::SetCurrentAdapterRequest* request,
                    v1::SetCurrentAdapterResponse* response) override {
    return handlers_.set_current(context, *request, response);
  }
  Status Download(ServerContext* context, const v1::DownloadAdapterRequest* request,
                  ServerWriter<v1::DownloadAdapterResponse>* writer) override {
    return handlers_.download(context, *request, writer);
  }

 private:
  const FakeHandlers& handlers_;
};

class Collection final : public v1::CollectionService::Service {
 public:
  explicit Collection(const FakeHandlers* handlers) : handlers_(*handlers) {}
  Status Create(ServerContext* context, const v1::CreateCollectionRequest* request,
                v1::Collection* response) override {
    return handlers_.create_collection(context, *request, response);
  }
  Status Update(ServerContext* context, const v1::UpdateCollectionRequest* request,
                v1::Collection* response) override {
    return handlers_.update_collection(context, *request, response);
  }

 private:
  const FakeHandlers& handlers_;
};

class Admin final : public v1::AdminService::Service {
 public:
  explicit Admin(const FakeHandlers* handlers) : handlers_(*handlers) {}
  Status GetStatus(ServerContext* context, const v1::GetStatusRequest* request,
                   v1::GetStatusResponse* response) override {
    return handlers_.get_status(context, *request, response);
  }
  Status Drain(ServerContext* context, const v1::DrainRequest* request,
               v1::DrainResponse* response) override {
    return handlers_.drain(context, *request, response);
  }

 private:
  const FakeHandlers& handlers_;
};

}  // namespace

struct FakeDaemon::Services {
  explicit Services(const FakeHandlers* handlers)
      : query(handlers),
        document(handlers),
        adapter(handlers),
        collection(handlers),
        admin(handlers) {}
  Query query;
  Document document;
  Adapter adapter;
  Collection collection;
  Admin admin;
};

FakeDaemon::FakeDaemon(const std::string& address)
    : services_(std::make_unique<Services>(&handlers)) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&services_->query);
  builder.RegisterService(&services_->document);
  builder.RegisterService(&services_->adapter);
  builder.RegisterService(&services_->collection);
  builder.RegisterService(&services_->admin);
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeDaemon::~FakeDaemon() { Stop(); }

void FakeDaemon::Stop() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  Settle();
}

grpc::Status ToStatus(const Refusal& refusal) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  info.set_reason(refusal.reason);
  info.set_domain("docmem");
  details.add_details()->PackFrom(info);
  if (!refusal.field.empty()) {
    google::rpc::BadRequest bad;
    bad.add_field_violations()->set_field(refusal.field);
    details.add_details()->PackFrom(bad);
  }
  if (refusal.retry_delay) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(*refusal.retry_delay));
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(
        *refusal.retry_delay - absl::Floor(*refusal.retry_delay, absl::Seconds(1)))));
    details.add_details()->PackFrom(retry);
  }
  return {refusal.code, refusal.message, details.SerializeAsString()};
}

std::optional<std::string> HeaderOf(const grpc::ServerContext& context, const std::string& name) {
  const auto found = context.client_metadata().find(name);
  if (found == context.client_metadata().end()) return std::nullopt;
  return std::string(found->second.data(), found->second.size());
}

}  // namespace docmem::client::testing
