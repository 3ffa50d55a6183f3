#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/internal/digest.h"
#include "docmem/v1/common.pb.h"

namespace docmem::client::internal {

inline constexpr size_t kChunkBytes = size_t{1} << 20;

/// Sends bytes as chunk messages of at most `kChunkBytes` and closes them with a StreamEnd.
/// `Stream` is one of gRPC's writers; it must outlive this. A false return means that the daemon
/// has ended the call: its status says why.
template <class Stream, class Request>
class ChunkWriter {
 public:
  explicit ChunkWriter(Stream* stream) : stream_(stream) {}

  bool Write(absl::string_view bytes) {
    while (!bytes.empty()) {
      const absl::string_view chunk = bytes.substr(0, kChunkBytes);
      Request message;
      message.set_chunk(chunk.data(), chunk.size());
      if (!stream_->Write(message)) return false;
      digest_.Update(chunk);
      total_bytes_ += chunk.size();
      bytes.remove_prefix(chunk.size());
      if (on_progress) on_progress(total_bytes_);
    }
    return true;
  }

  bool End() {
    Request message;
    message.mutable_end()->set_total_bytes(total_bytes_);
    message.mutable_end()->set_sha256(digest_.Hex());
    return stream_->Write(message) && stream_->WritesDone();
  }

  /// Told the bytes sent so far, after each chunk.
  std::function<void(uint64_t)> on_progress;

 private:
  Stream* const stream_;
  Sha256 digest_;
  uint64_t total_bytes_ = 0;
};

/// Checks received chunks against the StreamEnd that closes them.
class ChunkReader {
 public:
  void Take(absl::string_view chunk) {
    digest_.Update(chunk);
    total_bytes_ += chunk.size();
  }

  /// DATA_LOSS where the bytes differ from what the daemon says it sent.
  absl::Status End(const v1::StreamEnd& end) {
    complete_ = true;
    const std::string digest = digest_.Hex();
    if (end.total_bytes() == total_bytes_ && end.sha256() == digest) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("received ", total_bytes_, " bytes with SHA-256 ",
                                            digest, ", but sent were ", end.total_bytes(),
                                            " bytes with SHA-256 ", end.sha256()));
  }

  bool complete() const { return complete_; }
  uint64_t total_bytes() const { return total_bytes_; }

 private:
  Sha256 digest_;
  uint64_t total_bytes_ = 0;
  bool complete_ = false;
};

/// Reads a file piece by piece into `take` until the end or until `take` returns false. NOT_FOUND
/// or another error of the operating system where it can't be read.
absl::Status ReadFile(const std::string& path, const std::function<bool(absl::string_view)>& take);

/// Its size; NOT_FOUND where there is no such file.
absl::StatusOr<uint64_t> FileSize(const std::string& path);

}  // namespace docmem::client::internal
