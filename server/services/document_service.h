#pragma once

#include "adapter_store/adapter_store.h"
#include "docmem/v1/document.grpc.pb.h"
#include "server/ingest/archives.h"
#include "server/ingest/build.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/jobs/training.h"
#include "server/runtime/residency.h"

namespace docmem::server {

/// docmem.v1.DocumentService over store, builds, residency and archives. Reactors never block.
class DocumentService final : public v1::DocumentService::CallbackService {
 public:
  struct Parts {
    const Late<store::AdapterStore>* store = nullptr;
    const Late<Builds>* builds = nullptr;
    const Late<Trainings>* trainings = nullptr;
    const Late<Residency>* residency = nullptr;
    const Late<Archives>* archives = nullptr;
  };

  /// The parts must outlive the service.
  DocumentService(ServiceContext services, Parts parts);
  ~DocumentService() override;

  grpc::ServerBidiReactor<v1::IngestRequest, v1::IngestResponse>* Ingest(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const v1::GetDocumentRequest* request,
                                v1::Document* response) override;
  grpc::ServerUnaryReactor* BatchGet(grpc::CallbackServerContext* context,
                                     const v1::BatchGetDocumentsRequest* request,
                                     v1::BatchGetDocumentsResponse* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListDocumentsRequest* request,
                                 v1::ListDocumentsResponse* response) override;
  grpc::ServerUnaryReactor* Update(grpc::CallbackServerContext* context,
                                   const v1::UpdateDocumentRequest* request,
                                   v1::Document* response) override;
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context,
                                   const v1::DeleteDocumentRequest* request,
                                   v1::DeleteDocumentResponse* response) override;
  grpc::ServerWriteReactor<v1::GetTextResponse>* GetText(
      grpc::CallbackServerContext* context, const v1::GetTextRequest* request) override;
  grpc::ServerUnaryReactor* Prefetch(grpc::CallbackServerContext* context,
                                     const v1::PrefetchRequest* request,
                                     v1::PrefetchResponse* response) override;
  grpc::ServerWriteReactor<v1::BuildCacheResponse>* BuildCache(
      grpc::CallbackServerContext* context, const v1::BuildCacheRequest* request) override;
  grpc::ServerUnaryReactor* DeleteCache(grpc::CallbackServerContext* context,
                                        const v1::DeleteCacheRequest* request,
                                        v1::DeleteCacheResponse* response) override;
  grpc::ServerWriteReactor<v1::ExportDocumentResponse>* Export(
      grpc::CallbackServerContext* context, const v1::ExportDocumentRequest* request) override;
  grpc::ServerReadReactor<v1::ImportDocumentRequest>* Import(grpc::CallbackServerContext* context,
                                                             v1::Document* response) override;
  grpc::ServerUnaryReactor* SetEvaluation(grpc::CallbackServerContext* context,
                                          const v1::SetEvaluationRequest* request,
                                          v1::Document* response) override;

 private:
  absl::Status UpdateNow(Call& call, const v1::UpdateDocumentRequest& request,
                         v1::Document* response);
  absl::Status DeleteNow(Call& call, const v1::DeleteDocumentRequest& request,
                         v1::DeleteDocumentResponse* response);
  absl::Status DeleteCacheNow(Call& call, const v1::DeleteCacheRequest& request,
                              v1::DeleteCacheResponse* response);

  const ServiceContext services_;
  const Late<store::AdapterStore>* const store_;
  const Late<Builds>* const builds_;
  const Late<Trainings>* const trainings_;
  const Late<Residency>* const residency_;
  const Late<Archives>* const archives_;
};

}  // namespace docmem::server
