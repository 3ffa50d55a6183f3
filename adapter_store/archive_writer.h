#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/archive_manifest.h"
#include "adapter_store/files/digest.h"

namespace docmem::store {

/// Gives a stored document as an archive, piece by piece: one artifact is in memory at a time.
/// Not thread-safe; blocks on disk.
class ArchiveWriter {
 public:
  /// `model` goes into the manifest. `store` must outlive the writer. NOT_FOUND,
  /// FAILED_PRECONDITION where the document isn't ready, DATA_LOSS where it or its text is damaged,
  /// ABORTED when it was changed meanwhile.
  static absl::StatusOr<std::unique_ptr<ArchiveWriter>> Open(
      AdapterStore* store, const DocumentKey& key, std::map<std::string, std::string> model);

  /// At most 1 MiB; holds until the next call; empty: that was all. DATA_LOSS for a damaged
  /// artifact, ABORTED when one was deleted meanwhile.
  absl::StatusOr<std::string_view> Next();

  uint64_t total_bytes() const { return total_bytes_; }

 private:
  explicit ArchiveWriter(AdapterStore* store) : store_(store) {}
  absl::Status Describe(const DocumentKey& key);
  absl::Status ReadText(const Document& document);
  absl::Status Fill();

  AdapterStore* const store_;
  ArchiveManifest manifest_;
  std::string text_;               // until it is given
  std::vector<StoredFile> files_;  // the parts after the text
  size_t next_file_ = 0;
  enum class State { kHeader, kText, kFiles, kDigest, kEnd } state_ = State::kHeader;
  std::string piece_;  // what is being given
  size_t given_ = 0;   // bytes of it
  Sha256Hasher digest_;
  uint64_t total_bytes_ = 0;
};

}  // namespace docmem::store
