#include "server/services/ingest_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/text/unicode.h"
#include "server/services/build_messages.h"
#include "server/services/client_stream.h"
#include "server/services/training_messages.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

constexpr size_t kDerivedIdDigits = 32;

absl::Status Incomplete(const std::string& message) {
  return Error(absl::StatusCode::kInvalidArgument, reason::kStreamIncomplete, message);
}

}  // namespace

IngestStream::Reactor* IngestStream::Start(const ServiceContext& services, const Parts& parts,
                                           grpc::CallbackServerContext* context) {
  auto stream = std::shared_ptr<IngestStream>(new IngestStream(services, parts, context));
  stream->self_ = stream;
  if (!services.executor->TryRun([stream] { stream->Begin(); })) stream->Close(ExecutorFull());
  return stream.get();
}

IngestStream::IngestStream(const ServiceContext& services, const Parts& parts,
                           grpc::CallbackServerContext* context)
    : services_(services),
      parts_(parts),
      call_(services, method::kIngest, context),
      build_(parts.builds),
      writer_(this, services.timer, [this] {
        Cut(Error(absl::StatusCode::kUnavailable, reason::kSlowClient,
                  "the client read nothing for 30 s"));
      }) {}

void IngestStream::Begin() {
  const absl::Status status = call_.Admit([weak = weak_from_this()](const absl::Status& why) {
    if (const auto stream = weak.lock()) stream->Cut(why);
  });
  if (!status.ok()) return Close(status);
  Read();
}

void IngestStream::Read() {
  silence_ =
      services_.timer->At(absl::Now() + services_.silent_client_limit, [weak = weak_from_this()] {
        const auto stream = weak.lock();
        if (stream) stream->Cut(SilentClient(stream->services_.silent_client_limit));
      });
  store::MutexLock lock(&mutex_);
  if (!closed_) StartRead(&message_);
}

void IngestStream::OnReadDone(bool ok) {
  services_.executor->Run([self = shared_from_this(), ok] {
    self->services_.timer->Cancel(self->silence_);
    self->Take(ok);
  });
}

void IngestStream::Take(bool ok) {
  if (!ok) return Close(Incomplete("the stream ended without its end message"));
  if (absl::Status status = TakeMessage(); !status.ok()) return Cut(status);
  // Nothing is read behind the end message: what came there could only make a failure of a call
  // whose document may be there already.
  if (!handed_in_) Read();
}

absl::Status IngestStream::TakeMessage() {
  switch (message_.part_case()) {
    case v1::IngestRequest::kHeader:
      return TakeHeader(message_.header());
    case v1::IngestRequest::kChunk:
      return TakeChunk(message_.chunk());
    case v1::IngestRequest::kEnd:
      return TakeEnd(message_.end());
    case v1::IngestRequest::PART_NOT_SET:
      break;
  }
  return InvalidField("part", "a message must have a header, a chunk or an end");
}

absl::Status IngestStream::TakeHeader(const v1::IngestHeader& header) {
  if (request_) return Incomplete("a second header came");
  const v1::IngestOptions& options = header.options();
  absl::StatusOr<std::string> collection = CheckCollection(call_, header.collection());
  if (!collection.ok()) return collection.status();
  IngestRequest request;
  request.labels = {options.labels().begin(), options.labels().end()};
  absl::Status status;
  if (!header.document().empty()) status = CheckId("document", header.document());
  status.Update(CheckLength("system_text", options.system_text(), kMaxSystemTextBytes));
  status.Update(CheckLength("title", options.title(), kMaxTitleBytes));
  status.Update(CheckLabels("labels", request.labels));
  if (options.has_train_after()) status.Update(TakeTraining(options.train_after(), &request));
  if (header.replace() && header.revision() == 0) {
    status.Update(InvalidField("revision", "is required with replace"));
  }
  if (!status.ok()) return status;
  call_.About(*collection, header.document());

  const auto settings = (*parts_.store)->GetCollectionSettings(*collection);
  if (!settings.ok()) return settings.status();
  absl::StatusOr<std::vector<engine::Compression>> compressions =
      ToCompressions(options.ratio_ppm(), options.profiles(), options.kv_dtype(),
                     {settings->default_ratio_ppm, build_.kv_dtype()});
  if (!compressions.ok()) return compressions.status();
  request.key = {*std::move(collection), header.document()};
  request.compressions = *std::move(compressions);
  if (options.has_system_text()) request.system_text = options.system_text();
  request.title = options.title();
  request.pin = options.pin();
  if (options.has_retain_text()) request.retain_text = options.retain_text();
  request.replace = header.replace();
  request.revision = header.revision();
  detach_ = header.detach();
  request_ = std::move(request);
  return absl::OkStatus();
}

absl::Status IngestStream::TakeTraining(const v1::TrainingOptions& options,
                                        IngestRequest* request) const {
  absl::StatusOr<TrainingRequest> training = ToTrainingRequest(options);
  if (!training.ok()) return training.status();
  request->when_ready = [trainings = parts_.trainings, training = *std::move(training)](
                            const store::DocumentKey& key) -> absl::StatusOr<std::string> {
    const absl::StatusOr<TrainingReport> report = (*trainings)->Start(key, training);
    if (!report.ok()) return report.status();
    return report->id;
  };
  return absl::OkStatus();
}

absl::Status IngestStream::TakeChunk(const std::string& chunk) {
  if (!request_) return Incomplete("the first message must be the header");
  const uint64_t bytes = request_->text.size() + chunk.size();
  if (bytes > kMaxTextBytes) {
    return InvalidField("chunk", absl::StrCat("the text is longer than ", kMaxTextBytes, " bytes"),
                        reason::kLimitExceeded);
  }
  digest_.Update(chunk);
  request_->text += chunk;
  OnProgress({.phase = BuildProgress::Phase::kReceiving, .received_bytes = bytes});
  return absl::OkStatus();
}

absl::Status IngestStream::TakeEnd(const v1::StreamEnd& end) {
  if (!request_) return Incomplete("the first message must be the header");
  if (request_->text.empty()) return InvalidField("chunk", "the document is empty");
  const std::string digest = digest_.Hex();
  if (end.total_bytes() != request_->text.size() || end.sha256() != digest) {
    return InvalidField("end",
                        absl::StrCat("the stream says ", end.total_bytes(), " bytes, SHA-256 ",
                                     end.sha256().substr(0, 64), "; received were ",
                                     request_->text.size(), " bytes, SHA-256 ", digest),
                        reason::kChecksumMismatch);
  }
  if (!engine::IsValidUtf8(request_->text)) {
    return InvalidField("chunk", "the document isn't valid UTF-8");
  }
  request_->text_sha256 = digest;
  if (request_->key.id.empty()) {
    request_->key.id = digest.substr(0, kDerivedIdDigits);
    call_.About(request_->key.collection, request_->key.id);
  }
  handed_in_ = true;
  return build_.Start([this](Builds& builds) {
    return builds.Ingest(*std::exchange(request_, std::nullopt), detach_, shared_from_this());
  });
}

void IngestStream::OnProgress(const BuildProgress& progress) {
  v1::IngestResponse response;
  *response.mutable_progress() = ToMessage(progress);
  writer_.Push(response, [&response](v1::IngestResponse* waiting) {
    if (!waiting->has_progress()) return false;
    *waiting = response;
    return true;
  });
}

void IngestStream::OnClosed(const absl::StatusOr<BuildResult>& result) {
  if (result.ok()) {
    v1::IngestResponse response;
    *response.mutable_result() = ToIngestResult(*result);
    writer_.Push(std::move(response), [](v1::IngestResponse*) { return false; });
  }
  Close(result.status());
}

void IngestStream::Cut(const absl::Status& status) {
  build_.Leave();
  Close(status);
}

void IngestStream::Close(const absl::Status& status) {
  {
    store::MutexLock lock(&mutex_);
    if (std::exchange(closed_, true)) return;
  }
  writer_.Close(call_.Finish(status));
}

void IngestStream::OnWriteDone(bool ok) {
  if (!writer_.WriteDone(ok)) Cut(ClientGone());
}

void IngestStream::OnCancel() { Cut(ClientGone()); }

void IngestStream::OnDone() { self_.reset(); }

}  // namespace docmem::server
