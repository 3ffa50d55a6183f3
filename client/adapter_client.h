#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/connection.h"
#include "client/options.h"
#include "docmem/v1/adapter.pb.h"

namespace docmem::client {

/// A file to upload: its name in the adapter and where it lies here. It must not change meanwhile.
struct AdapterSource {
  std::string name;
  std::string path;
};

/// Told the bytes sent so far of all bytes, on the calling thread.
using UploadProgressFunction = std::function<void(uint64_t sent_bytes, uint64_t total_bytes)>;

/// Takes a downloaded adapter, on the calling thread. A failure ends the call with it.
class AdapterSink {
 public:
  virtual ~AdapterSink() = default;
  /// The file that the following bytes belong to. Its name came over the network: not a safe path.
  virtual absl::Status BeginFile(const v1::AdapterFile& file) = 0;
  virtual absl::Status Write(absl::string_view bytes) = 0;
};

/// Adapters of documents. Thread-safe. Requests, replies and errors are those of
/// docmem/v1/adapter.proto.
class AdapterClient {
 public:
  explicit AdapterClient(std::shared_ptr<const Connection> connection);
  ~AdapterClient();

  /// Reads the files again for every try. Errors also where one can't be read.
  absl::StatusOr<v1::Adapter> Upload(const v1::AdapterHeader& header,
                                     const std::vector<AdapterSource>& files,
                                     const UploadProgressFunction& progress = nullptr,
                                     const CallOptions& options = {});
  absl::StatusOr<v1::Adapter> Get(const v1::GetAdapterRequest& request,
                                  const CallOptions& options = {});
  absl::StatusOr<v1::ListAdaptersResponse> List(const v1::ListAdaptersRequest& request,
                                                const CallOptions& options = {});
  /// DATA_LOSS where what came isn't what was sent; the sink has seen it by then.
  absl::Status Download(const v1::DownloadAdapterRequest& request, AdapterSink* sink,
                        const CallOptions& options = {});
  absl::StatusOr<v1::SetCurrentAdapterResponse> SetCurrent(
      const v1::SetCurrentAdapterRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::DeleteAdapterResponse> Delete(const v1::DeleteAdapterRequest& request,
                                                   const CallOptions& options = {});

 private:
  struct Stub;
  const std::shared_ptr<const Connection> connection_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace docmem::client
