#include "server/services/document_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/formats/digest.h"
#include "server/errors/error.h"
#include "server/services/build_stream.h"
#include "server/services/document_export.h"
#include "server/services/document_import.h"
#include "server/services/ingest_stream.h"
#include "server/services/messages.h"
#include "server/services/prefetch.h"
#include "server/services/server_stream.h"
#include "server/services/unary.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

constexpr int kMaxBatchGet = 1000;
constexpr size_t kTextChunkBytes = size_t{256} << 10;

// A stored text in chunks with its end message.
class TextSource final : public MessageSource<v1::GetTextResponse> {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}

  absl::StatusOr<bool> Next(v1::GetTextResponse* message) override {
    if (ended_) return false;
    if (sent_ < text_.size()) {
      message->set_chunk(text_.substr(sent_, kTextChunkBytes));
      sent_ += message->chunk().size();
      return true;
    }
    message->mutable_end()->set_total_bytes(text_.size());
    message->mutable_end()->set_sha256(engine::Sha256Hex(text_));
    ended_ = true;
    return true;
  }

 private:
  const std::string text_;
  size_t sent_ = 0;
  bool ended_ = false;
};

absl::StatusOr<store::DocumentEdit> ToEdit(const v1::UpdateDocumentRequest& request) {
  if (request.update_mask().paths().empty()) {
    return InvalidField("update_mask", "must name at least one field");
  }
  const v1::Document& values = request.values();
  store::DocumentEdit edit;
  absl::Status status;
  for (const std::string& path : request.update_mask().paths()) {
    if (path == "title") {
      status.Update(CheckLength("values.title", values.title(), kMaxTitleBytes));
      edit.title = values.title();
    } else if (path == "labels") {
      edit.labels = store::Labels(values.labels().begin(), values.labels().end());
      status.Update(CheckLabels("values.labels", *edit.labels));
    } else if (path == "pinned") {
      edit.pinned = values.pinned();
    } else if (path == "default_cache_id") {
      status.Update(CheckId("values.default_cache_id", values.default_cache_id()));
      edit.default_cache_id = values.default_cache_id();
    } else if (path == "text_retained") {
      if (values.text_retained()) {
        status.Update(InvalidField("values.text_retained", "can only be set to false"));
      }
      edit.drop_text = true;
    } else {
      status.Update(InvalidField("update_mask",
                                 absl::StrCat("'", path.substr(0, 100), "' can't be updated")));
    }
  }
  if (!status.ok()) return status;
  return edit;
}

absl::Status CheckEvaluation(const v1::Evaluation& evaluation) {
  constexpr int kMaxRows = 100;
  if (evaluation.rows().empty() || evaluation.rows_size() > kMaxRows) {
    return InvalidField("evaluation.rows", absl::StrCat("must be 1 to ", kMaxRows, " rows"));
  }
  for (const v1::Evaluation::Row& row : evaluation.rows()) {
    absl::Status status = CheckRatio("evaluation.rows.ratio_ppm", row.ratio_ppm());
    if (!status.ok()) return status;
    if (!FromMessage(row.mode())) {
      return InvalidField("evaluation.rows.mode", absl::StrCat("unknown value ", row.mode()));
    }
    if (!(row.rouge_l() >= 0.0 && row.rouge_l() <= 1.0)) {
      return InvalidField("evaluation.rows.rouge_l", "must be from 0 to 1");
    }
    if (!(row.first_token_seconds() >= 0.0)) {
      return InvalidField("evaluation.rows.first_token_seconds", "must be 0 or above");
    }
  }
  return CheckDigest("evaluation.questions_digest", evaluation.questions_digest());
}

}  // namespace

// Here, so that the stubs' many templates are compiled in one file.
DocumentService::DocumentService(ServiceContext services, Parts parts)
    : services_(services),
      store_(parts.store),
      builds_(parts.builds),
      trainings_(parts.trainings),
      residency_(parts.residency),
      archives_(parts.archives) {}
DocumentService::~DocumentService() = default;

grpc::ServerBidiReactor<v1::IngestRequest, v1::IngestResponse>* DocumentService::Ingest(
    grpc::CallbackServerContext* context) {
  return IngestStream::Start(services_, {builds_, store_, trainings_}, context);
}

grpc::ServerUnaryReactor* DocumentService::Get(grpc::CallbackServerContext* context,
                                               const v1::GetDocumentRequest* request,
                                               v1::Document* response) {
  return RunUnary(services_, method::kDocumentGet, context, [=, this](Call& call) {
    absl::StatusOr<store::DocumentKey> key =
        CheckKey(call, request->collection(), request->document());
    if (!key.ok()) return key.status();
    absl::StatusOr<store::Document> document = (*store_)->GetDocument(*key);
    if (document.ok()) *response = ToMessage(*document);
    return document.status();
  });
}

grpc::ServerUnaryReactor* DocumentService::BatchGet(grpc::CallbackServerContext* context,
                                                    const v1::BatchGetDocumentsRequest* request,
                                                    v1::BatchGetDocumentsResponse* response) {
  return RunUnary(services_, method::kDocumentBatchGet, context, [=, this](Call& call) {
    if (request->documents().empty() || request->documents_size() > kMaxBatchGet) {
      return InvalidField("documents", absl::StrCat("has ", request->documents_size(),
                                                    " ids; 1 to 1000 are allowed"));
    }
    if (auto found = CheckCollection(call, request->collection()); !found.ok())
      return found.status();
    for (const std::string& id : request->documents()) {
      absl::StatusOr<store::DocumentKey> key = CheckKey(call, request->collection(), id);
      if (!key.ok()) return key.status();
      absl::StatusOr<store::Document> document = (*store_)->GetDocument(*key);
      if (document.ok()) {
        *response->add_documents() = ToMessage(*document);
      } else if (store::ReasonOf(document.status()) == reason::kDocumentNotFound) {
        response->add_missing(id);
      } else {
        return document.status();
      }
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* DocumentService::List(grpc::CallbackServerContext* context,
                                                const v1::ListDocumentsRequest* request,
                                                v1::ListDocumentsResponse* response) {
  return RunUnary(services_, method::kDocumentList, context, [=, this](Call& call) {
    absl::StatusOr<std::string> collection = CheckCollection(call, request->collection());
    if (!collection.ok()) return collection.status();
    absl::StatusOr<store::PageRequest> page =
        CheckPage(request->page_size(), request->page_token());
    if (!page.ok()) return page.status();
    store::DocumentQuery query;
    query.labels = {request->labels().begin(), request->labels().end()};
    if (absl::Status status = CheckLabels("labels", query.labels); !status.ok()) return status;
    if (!v1::DocumentOrder_IsValid(request->order())) {
      return InvalidField("order", absl::StrCat("unknown value ", request->order()));
    }
    if (request->order() == v1::DOCUMENT_ORDER_CREATE_TIME) {
      query.order = store::DocumentOrder::kCreated;
    }
    query.descending = request->descending();
    absl::StatusOr<store::Page<store::Document>> documents =
        (*store_)->ListDocuments(*collection, query, *page);
    if (!documents.ok()) return documents.status();
    for (const store::Document& document : documents->items) {
      *response->add_documents() = ToMessage(document);
    }
    response->set_next_page_token(documents->next_token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* DocumentService::Update(grpc::CallbackServerContext* context,
                                                  const v1::UpdateDocumentRequest* request,
                                                  v1::Document* response) {
  return RunUnary(services_, method::kDocumentUpdate, context,
                  [=, this](Call& call) { return UpdateNow(call, *request, response); });
}

absl::Status DocumentService::UpdateNow(Call& call, const v1::UpdateDocumentRequest& request,
                                        v1::Document* response) {
  absl::StatusOr<store::DocumentKey> key = CheckKey(call, request.collection(), request.document());
  if (!key.ok()) return key.status();
  absl::StatusOr<store::DocumentEdit> edit = ToEdit(request);
  if (!edit.ok()) return edit.status();
  absl::StatusOr<store::Document> document =
      (*store_)->UpdateDocument(*key, request.revision(), *edit);
  if (!document.ok()) return document.status();
  if (edit->pinned || edit->default_cache_id) {
    absl::StatusOr<store::Adapter> current = absl::NotFoundError("none");
    if (document->current_adapter_version != 0) current = (*store_)->GetAdapter(*key, 0);
    (*residency_)->SetPins(*document, current.ok() ? &*current : nullptr);
  }
  *response = ToMessage(*document);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* DocumentService::Delete(grpc::CallbackServerContext* context,
                                                  const v1::DeleteDocumentRequest* request,
                                                  v1::DeleteDocumentResponse* response) {
  return RunUnary(services_, method::kDocumentDelete, context,
                  [=, this](Call& call) { return DeleteNow(call, *request, response); });
}

absl::Status DocumentService::DeleteNow(Call& call, const v1::DeleteDocumentRequest& request,
                                        v1::DeleteDocumentResponse* response) {
  absl::StatusOr<store::DocumentKey> key = CheckKey(call, request.collection(), request.document());
  if (!key.ok()) return key.status();
  const absl::Status status = (*store_)->DeleteDocument(*key, request.revision());
  const bool absent = store::ReasonOf(status) == reason::kDocumentNotFound;
  if (absent && request.allow_missing()) return absl::OkStatus();
  if (!status.ok()) return status;
  (*residency_)->ForgetDocument(*key);
  response->set_deleted(true);
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::GetTextResponse>* DocumentService::GetText(
    grpc::CallbackServerContext* context, const v1::GetTextRequest* request) {
  using Stream = ServerStream<v1::GetTextResponse>;
  return Stream::Start(
      services_, method::kGetText, context,
      [this, request = *request](Call& call) -> absl::StatusOr<std::unique_ptr<Stream::Source>> {
        absl::StatusOr<store::DocumentKey> key =
            CheckKey(call, request.collection(), request.document());
        if (!key.ok()) return key.status();
        absl::StatusOr<std::string> text = (*store_)->ReadText(*key);
        if (!text.ok()) return text.status();
        return std::make_unique<TextSource>(*std::move(text));
      });
}

grpc::ServerUnaryReactor* DocumentService::Prefetch(grpc::CallbackServerContext* context,
                                                    const v1::PrefetchRequest* request,
                                                    v1::PrefetchResponse* response) {
  return PrefetchCall::Start(services_, store_, residency_, context, request, response);
}

grpc::ServerWriteReactor<v1::BuildCacheResponse>* DocumentService::BuildCache(
    grpc::CallbackServerContext* context, const v1::BuildCacheRequest* request) {
  return BuildStream::Start(services_, builds_, store_, context, request);
}

grpc::ServerUnaryReactor* DocumentService::DeleteCache(grpc::CallbackServerContext* context,
                                                       const v1::DeleteCacheRequest* request,
                                                       v1::DeleteCacheResponse* response) {
  return RunUnary(services_, method::kDeleteCache, context,
                  [=, this](Call& call) { return DeleteCacheNow(call, *request, response); });
}

absl::Status DocumentService::DeleteCacheNow(Call& call, const v1::DeleteCacheRequest& request,
                                             v1::DeleteCacheResponse* response) {
  absl::StatusOr<store::DocumentKey> key = CheckKey(call, request.collection(), request.document());
  if (!key.ok()) return key.status();
  if (absl::Status status = CheckId("cache_id", request.cache_id()); !status.ok()) return status;
  absl::StatusOr<store::Document> document = (*store_)->GetDocument(*key);
  if (!document.ok()) return document.status();
  const absl::Status status = (*store_)->DeleteCache(*key, request.cache_id());
  const bool absent = store::ReasonOf(status) == reason::kCacheNotFound;
  if (absent && request.allow_missing()) return absl::OkStatus();
  if (!status.ok()) return status;
  for (const store::Cache& cache : document->caches) {
    if (cache.spec.id == request.cache_id()) (*residency_)->Forget(*key, cache);
  }
  response->set_deleted(true);
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::ExportDocumentResponse>* DocumentService::Export(
    grpc::CallbackServerContext* context, const v1::ExportDocumentRequest* request) {
  using Stream = ServerStream<v1::ExportDocumentResponse>;
  return Stream::Start(
      services_, method::kExport, context,
      [this, request = *request](Call& call) -> absl::StatusOr<std::unique_ptr<Stream::Source>> {
        absl::StatusOr<store::DocumentKey> key =
            CheckKey(call, request.collection(), request.document());
        if (!key.ok()) return key.status();
        auto archive = (*archives_)->Export(*key);
        if (!archive.ok()) return archive.status();
        return std::make_unique<DocumentExportSource>(*std::move(archive));
      });
}

grpc::ServerReadReactor<v1::ImportDocumentRequest>* DocumentService::Import(
    grpc::CallbackServerContext* context, v1::Document* response) {
  using Stream = ClientStream<v1::ImportDocumentRequest, v1::Document>;
  return Stream::Start(services_, method::kImport, context, response, [this](Call& call) {
    return std::make_unique<DocumentImportSink>(archives_, &call);
  });
}

grpc::ServerUnaryReactor* DocumentService::SetEvaluation(grpc::CallbackServerContext* context,
                                                         const v1::SetEvaluationRequest* request,
                                                         v1::Document* response) {
  return RunUnary(services_, method::kSetEvaluation, context, [=, this](Call& call) {
    const auto key = CheckKey(call, request->collection(), request->document());
    if (!key.ok()) return key.status();
    store::DocumentEdit edit{.evaluation = ""};
    if (request->has_evaluation()) {
      if (absl::Status status = CheckEvaluation(request->evaluation()); !status.ok()) {
        return status;
      }
      v1::Evaluation evaluation = request->evaluation();
      *evaluation.mutable_create_time() = ToMessage(absl::Now());
      edit.evaluation = evaluation.SerializeAsString();
    }
    const auto document = (*store_)->UpdateDocument(*key, 0, edit);
    if (document.ok()) *response = ToMessage(*document);
    return document.status();
  });
}

}  // namespace docmem::server
