#include "server/services/build_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/artifacts/mode.h"
#include "server/services/build_messages.h"
#include "server/services/messages.h"
#include "server/services/validate.h"

namespace docmem::server {

BuildStream::Reactor* BuildStream::Start(const ServiceContext& services, const Late<Builds>* builds,
                                         const Late<store::AdapterStore>* store,
                                         grpc::CallbackServerContext* context,
                                         const v1::BuildCacheRequest* request) {
  auto stream =
      std::shared_ptr<BuildStream>(new BuildStream(services, builds, store, context, request));
  stream->self_ = stream;
  if (!services.executor->TryRun([stream] { stream->Begin(); })) stream->Close(ExecutorFull());
  return stream.get();
}

BuildStream::BuildStream(const ServiceContext& services, const Late<Builds>* builds,
                         const Late<store::AdapterStore>* store,
                         grpc::CallbackServerContext* context, const v1::BuildCacheRequest* request)
    : store_(store),
      request_(*request),
      call_(services, method::kBuildCache, context),
      build_(builds),
      writer_(this, services.timer, [this] {
        Cut(Error(absl::StatusCode::kUnavailable, reason::kSlowClient,
                  "the client read nothing for 30 s"));
      }) {}

void BuildStream::Begin() {
  absl::Status status = call_.Admit([weak = weak_from_this()](const absl::Status& why) {
    if (const auto stream = weak.lock()) stream->Cut(why);
  });
  if (!status.ok()) return Close(status);
  absl::StatusOr<CacheBuildRequest> request = Read();
  if (!request.ok()) return Close(request.status());
  status = build_.Start(
      [&](Builds& builds) { return builds.BuildCaches(*std::move(request), shared_from_this()); });
  if (!status.ok()) Close(status);
}

absl::StatusOr<CacheBuildRequest> BuildStream::Read() {
  absl::StatusOr<store::DocumentKey> key =
      CheckKey(call_, request_.collection(), request_.document());
  if (!key.ok()) return key.status();
  const auto mode = FromMessage(request_.mode());
  if (!mode && request_.mode() != v1::MODE_UNSPECIFIED) {
    return InvalidField("mode", absl::StrCat("unknown value ", request_.mode()));
  }
  if (request_.adapter_version() != 0 && (!mode || engine::UsesBaseCache(*mode))) {
    return InvalidField("adapter_version", "goes with the adapter-prefill modes only");
  }
  if (absl::Status status = CheckLength("system_text", request_.system_text(), kMaxSystemTextBytes);
      !status.ok()) {
    return status;
  }
  const auto settings = (*store_)->GetCollectionSettings(key->collection);
  if (!settings.ok()) return settings.status();
  absl::StatusOr<std::vector<engine::Compression>> compressions =
      ToCompressions(request_.ratio_ppm(), request_.profiles(), request_.kv_dtype(),
                     {settings->default_ratio_ppm, build_.kv_dtype()});
  if (!compressions.ok()) return compressions.status();
  CacheBuildRequest build;
  build.key = *std::move(key);
  build.compressions = *std::move(compressions);
  if (request_.has_system_text()) build.system_text = request_.system_text();
  build.maker = {.mode = mode.value_or(engine::Mode::kBase),
                 .adapter_version = request_.adapter_version()};
  return build;
}

void BuildStream::OnProgress(const BuildProgress& progress) {
  v1::BuildCacheResponse response;
  *response.mutable_progress() = ToMessage(progress);
  writer_.Push(response, [&response](v1::BuildCacheResponse* waiting) {
    if (!waiting->has_progress()) return false;
    *waiting = response;
    return true;
  });
}

void BuildStream::OnClosed(const absl::StatusOr<BuildResult>& result) {
  if (result.ok()) {
    v1::BuildCacheResponse response;
    *response.mutable_result() = ToBuildCacheResult(*result);
    writer_.Push(std::move(response), [](v1::BuildCacheResponse*) { return false; });
  }
  Close(result.status());
}

void BuildStream::Cut(const absl::Status& status) {
  build_.Leave();
  Close(status);
}

void BuildStream::Close(const absl::Status& status) {
  {
    store::MutexLock lock(&mutex_);
    if (std::exchange(closed_, true)) return;
  }
  writer_.Close(call_.Finish(status));
}

void BuildStream::OnWriteDone(bool ok) {
  if (!writer_.WriteDone(ok)) Cut(ClientGone());
}

void BuildStream::OnCancel() { Cut(ClientGone()); }

void BuildStream::OnDone() { self_.reset(); }

}  // namespace docmem::server
