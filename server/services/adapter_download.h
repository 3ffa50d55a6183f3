#pragma once

#include <cstddef>
#include <string>

#include "adapter_store/adapter_store.h"
#include "docmem/v1/adapter.pb.h"
#include "engine/formats/digest.h"
#include "server/services/server_stream.h"

namespace docmem::server {

/// Gives an adapter's files as they were uploaded, piece by piece. Executor.
class AdapterDownloadSource final : public MessageSource<v1::DownloadAdapterResponse> {
 public:
  /// `store` must outlive the source.
  AdapterDownloadSource(store::AdapterStore* store, store::Adapter adapter)
      : store_(store), adapter_(std::move(adapter)) {}

  absl::StatusOr<bool> Next(v1::DownloadAdapterResponse* message) override;

 private:
  store::AdapterStore* const store_;
  const store::Adapter adapter_;
  size_t next_file_ = 0;
  std::string content_;  // of the file before `next_file_`
  size_t sent_ = 0;      // bytes of it
  uint64_t total_bytes_ = 0;
  engine::Sha256 digest_;
  bool ended_ = false;
};

}  // namespace docmem::server
