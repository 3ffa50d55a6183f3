#include "client/adapter_client.h"

#include <utility>

#include "client/internal/chunks.h"
#include "client/internal/unary.h"
#include "docmem/v1/adapter.grpc.pb.h"

namespace docmem::client {
namespace {

using Rpc = v1::AdapterService::StubInterface;
using internal::Attempt;
using internal::Repeat;
using internal::Unary;

using UploadWriter = grpc::ClientWriterInterface<v1::UploadAdapterRequest>;
using UploadChunks = internal::ChunkWriter<UploadWriter, v1::UploadAdapterRequest>;

template <class Request>
internal::Call DocumentCall(const Request& request, Repeat repeat,
                            absl::Duration timeout = internal::kShortTimeout) {
  return {repeat, timeout, internal::DocumentHeader(request.collection(), request.document())};
}

absl::StatusOr<std::vector<v1::AdapterFile>> Describe(const std::vector<AdapterSource>& files) {
  std::vector<v1::AdapterFile> described;
  for (const AdapterSource& source : files) {
    absl::StatusOr<uint64_t> size = internal::FileSize(source.path);
    if (!size.ok()) return size.status();
    v1::AdapterFile file;
    file.set_name(source.name);
    file.set_size_bytes(*size);
    described.push_back(std::move(file));
  }
  return described;
}

// True while the daemon takes more.
absl::StatusOr<bool> SendFile(const AdapterSource& source, const v1::AdapterFile& file,
                              UploadWriter* stream, UploadChunks* chunks) {
  v1::UploadAdapterRequest message;
  *message.mutable_file() = file;
  bool open = stream->Write(message);
  if (!open) return false;
  absl::Status read = internal::ReadFile(
      source.path, [&](absl::string_view bytes) { return open = chunks->Write(bytes); });
  if (!read.ok()) return read;
  return open;
}

Attempt TryUpload(Rpc* rpc, grpc::ClientContext* context, const v1::AdapterHeader& header,
                  const std::vector<AdapterSource>& sources, const UploadProgressFunction& progress,
                  v1::Adapter* adapter) {
  const absl::StatusOr<std::vector<v1::AdapterFile>> files = Describe(sources);
  if (!files.ok()) return {.local = files.status()};
  uint64_t total_bytes = 0;
  for (const v1::AdapterFile& file : *files) total_bytes += file.size_bytes();

  const auto stream = rpc->Upload(context, adapter);
  UploadChunks chunks(stream.get());
  if (progress) chunks.on_progress = [&](uint64_t sent) { progress(sent, total_bytes); };
  v1::UploadAdapterRequest first;
  *first.mutable_header() = header;
  absl::StatusOr<bool> open = stream->Write(first);
  for (size_t i = 0; i < sources.size() && open.ok() && *open; ++i) {
    open = SendFile(sources[i], (*files)[i], stream.get(), &chunks);
  }
  if (!open.ok()) {
    context->TryCancel();
  } else if (*open) {
    chunks.End();
  }
  return {.status = stream->Finish(), .local = open.status()};
}

Attempt TryDownload(Rpc* rpc, grpc::ClientContext* context,
                    const v1::DownloadAdapterRequest& request, AdapterSink* sink) {
  const auto reader = rpc->Download(context, request);
  Attempt attempt{.complete = false};
  internal::ChunkReader chunks;
  v1::DownloadAdapterResponse response;
  while (attempt.local.ok() && reader->Read(&response)) {
    if (response.has_file()) {
      attempt.delivered = true;
      attempt.local = sink->BeginFile(response.file());
    } else if (response.has_chunk()) {
      attempt.delivered = true;
      chunks.Take(response.chunk());
      attempt.local = sink->Write(response.chunk());
    } else if (response.has_end()) {
      attempt.local = chunks.End(response.end());
    }
  }
  if (!attempt.local.ok()) context->TryCancel();
  attempt.complete = chunks.complete();
  attempt.status = reader->Finish();
  return attempt;
}

}  // namespace

struct AdapterClient::Stub {
  std::unique_ptr<Rpc> rpc;
};

AdapterClient::AdapterClient(std::shared_ptr<const Connection> connection)
    : connection_(std::move(connection)),
      stub_(new Stub{v1::AdapterService::NewStub(connection_->channel().channel())}) {}

AdapterClient::~AdapterClient() = default;

absl::StatusOr<v1::Adapter> AdapterClient::Upload(const v1::AdapterHeader& header,
                                                  const std::vector<AdapterSource>& files,
                                                  const UploadProgressFunction& progress,
                                                  const CallOptions& options) {
  v1::Adapter adapter;
  absl::Status status = connection_->channel().Run(
      DocumentCall(header, Repeat::kSafe, internal::kLongTimeout), options,
      [&](grpc::ClientContext* context) {
        return TryUpload(stub_->rpc.get(), context, header, files, progress, &adapter);
      });
  if (!status.ok()) return status;
  return adapter;
}

absl::StatusOr<v1::Adapter> AdapterClient::Get(const v1::GetAdapterRequest& request,
                                               const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Get, request,
               DocumentCall(request, Repeat::kSafe), options);
}

absl::StatusOr<v1::ListAdaptersResponse> AdapterClient::List(const v1::ListAdaptersRequest& request,
                                                             const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::List, request,
               DocumentCall(request, Repeat::kSafe), options);
}

absl::Status AdapterClient::Download(const v1::DownloadAdapterRequest& request, AdapterSink* sink,
                                     const CallOptions& options) {
  return connection_->channel().Run(DocumentCall(request, Repeat::kSafe, internal::kLongTimeout),
                                    options, [&](grpc::ClientContext* context) {
                                      return TryDownload(stub_->rpc.get(), context, request, sink);
                                    });
}

absl::StatusOr<v1::SetCurrentAdapterResponse> AdapterClient::SetCurrent(
    const v1::SetCurrentAdapterRequest& request, const CallOptions& options) {
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::SetCurrent, request,
               DocumentCall(request, Repeat::kUnsafe), options);
}

absl::StatusOr<v1::DeleteAdapterResponse> AdapterClient::Delete(
    const v1::DeleteAdapterRequest& request, const CallOptions& options) {
  const Repeat repeat = request.allow_missing() ? Repeat::kSafe : Repeat::kUnsafe;
  return Unary(connection_->channel(), stub_->rpc.get(), &Rpc::Delete, request,
               DocumentCall(request, repeat), options);
}

}  // namespace docmem::client
