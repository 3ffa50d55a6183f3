#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "docmem/v1/adapter.grpc.pb.h"
#include "docmem/v1/admin.grpc.pb.h"
#include "docmem/v1/collection.grpc.pb.h"
#include "docmem/v1/document.grpc.pb.h"
#include "docmem/v1/query.grpc.pb.h"

namespace docmem::client::testing {

/// Orders what tests and handlers do, in the eyes of ThreadSanitizer too, which doesn't see gRPC's
/// own order.
inline std::mutex handler_mutex;

/// What a test wants an RPC to do; unset: UNIMPLEMENTED, as another server would say it.
template <class... Arguments>
class Handler {
 public:
  using Function = std::function<grpc::Status(grpc::ServerContext*, Arguments...)>;

  template <class Callable>
  Handler& operator=(Callable callable) {
    const std::lock_guard lock(handler_mutex);
    function_ = std::move(callable);
    return *this;
  }

  grpc::Status operator()(grpc::ServerContext* context, Arguments... arguments) const {
    Function function;
    {
      const std::lock_guard lock(handler_mutex);
      function = function_;
    }
    if (!function) return {grpc::StatusCode::UNIMPLEMENTED, "not scripted"};
    grpc::Status status = function(context, arguments...);
    const std::lock_guard lock(handler_mutex);
    return status;
  }

 private:
  Function function_;
};

template <class Request, class Response>
using UnaryHandler = Handler<const Request&, Response*>;

template <class Request, class Response>
using StreamHandler = Handler<const Request&, grpc::ServerWriter<Response>*>;

/// The RPCs that tests stand in for.
struct FakeHandlers {
  StreamHandler<v1::AskRequest, v1::AskResponse> ask;
  UnaryHandler<v1::ScoreRequest, v1::ScoreResponse> score;
  UnaryHandler<v1::AbortRequest, v1::AbortResponse> abort;

  Handler<grpc::ServerReaderWriter<v1::IngestResponse, v1::IngestRequest>*> ingest;
  UnaryHandler<v1::GetDocumentRequest, v1::Document> get_document;
  UnaryHandler<v1::ListDocumentsRequest, v1::ListDocumentsResponse> list_documents;
  UnaryHandler<v1::UpdateDocumentRequest, v1::Document> update_document;
  UnaryHandler<v1::DeleteDocumentRequest, v1::DeleteDocumentResponse> delete_document;
  StreamHandler<v1::GetTextRequest, v1::GetTextResponse> get_text;
  UnaryHandler<v1::PrefetchRequest, v1::PrefetchResponse> prefetch;
  StreamHandler<v1::BuildCacheRequest, v1::BuildCacheResponse> build_cache;
  UnaryHandler<v1::DeleteCacheRequest, v1::DeleteCacheResponse> delete_cache;
  StreamHandler<v1::ExportDocumentRequest, v1::ExportDocumentResponse> export_document;
  Handler<grpc::ServerReader<v1::ImportDocumentRequest>*, v1::Document*> import_document;

  Handler<grpc::ServerReader<v1::UploadAdapterRequest>*, v1::Adapter*> upload;
  UnaryHandler<v1::ListAdaptersRequest, v1::ListAdaptersResponse> list_adapters;
  UnaryHandler<v1::SetCurrentAdapterRequest, v1::SetCurrentAdapterResponse> set_current;
  StreamHandler<v1::DownloadAdapterRequest, v1::DownloadAdapterResponse> download;

  UnaryHandler<v1::CreateCollectionRequest, v1::Collection> create_collection;
  UnaryHandler<v1::UpdateCollectionRequest, v1::Collection> update_collection;

  UnaryHandler<v1::GetStatusRequest, v1::GetStatusResponse> get_status;
  UnaryHandler<v1::DrainRequest, v1::DrainResponse> drain;
};

/// A server on a loopback port, by default a free one, whose RPCs do what a test says.
class FakeDaemon {
 public:
  explicit FakeDaemon(const std::string& address = "127.0.0.1:0");
  ~FakeDaemon();

  FakeHandlers handlers;
  const std::string& address() const { return address_; }
  /// Ends the server and with it all open streams.
  void Stop();
  /// What ended handlers have written can be read now, and they will see what the test has written.
  void Settle() const { const std::lock_guard lock(handler_mutex); }

 private:
  struct Services;
  const std::unique_ptr<Services> services_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

/// A failure as docmemd says it.
struct Refusal {
  grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
  std::string reason;
  std::string message = "refused";
  std::string field;
  std::optional<absl::Duration> retry_delay;
};
grpc::Status ToStatus(const Refusal& refusal);

/// A header of the call; nothing when it wasn't sent.
std::optional<std::string> HeaderOf(const grpc::ServerContext& context, const std::string& name);

}  // namespace docmem::client::testing
