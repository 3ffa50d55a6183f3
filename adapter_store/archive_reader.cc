#include "adapter_store/archive_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/archive_layout.h"
#include "adapter_store/errors.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

std::string NameOf(const ArchivePart& part) {
  if (part.cache != nullptr) return absl::StrCat("cache ", part.cache->id);
  if (part.adapter == nullptr) return "text";
  return absl::StrCat("file ", part.file->name, " of adapter version ", part.adapter->version);
}

}  // namespace

ArchiveReader::ArchiveReader(ArchiveSink* sink) : sink_(sink) {
  Expect(State::kVersion, kArchiveVersionBytes);
}

absl::Status ArchiveReader::Take(std::string_view bytes) {
  total_bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (state_ == State::kEnd) return ArchiveInvalid("the file goes on behind its end");
    const size_t count = std::min<uint64_t>(bytes.size(), wanted_ - gathered_.size());
    gathered_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    // An empty part is whole without a byte more.
    while (gathered_.size() == wanted_ && state_ != State::kEnd) STORE_RETURN_IF_ERROR(Advance());
  }
  return absl::OkStatus();
}

absl::Status ArchiveReader::Finish() const {
  if (state_ == State::kEnd) return absl::OkStatus();
  return ArchiveInvalid(
      absl::StrCat("the file is cut off: it ends after ", total_bytes_, " bytes; copy it again"));
}

void ArchiveReader::Expect(State state, uint64_t bytes) {
  state_ = state;
  wanted_ = bytes;
  gathered_.clear();
  gathered_.reserve(bytes);
}

absl::Status ArchiveReader::Advance() {
  if (state_ != State::kDigest) digest_.Update(gathered_);
  switch (state_) {
    case State::kVersion:
      STORE_RETURN_IF_ERROR(TakeVersion());
      Expect(State::kHeader, kArchiveHeaderBytes);
      return absl::OkStatus();
    case State::kHeader: {
      const uint32_t manifest_bytes = DecodeLength(gathered_);
      manifest_digest_ = gathered_.substr(4);
      if (manifest_bytes == 0 || manifest_bytes > kMaxManifestBytes) {
        return ArchiveInvalid(absl::StrCat("the file is damaged: its manifest has ", manifest_bytes,
                                           " bytes, not 1 to ", kMaxManifestBytes));
      }
      Expect(State::kManifest, manifest_bytes);
      return absl::OkStatus();
    }
    case State::kManifest:
      return TakeManifest();
    case State::kParts:
      return TakePart();
    case State::kDigest:
      if (gathered_ != digest_.Hex()) {
        return ArchiveInvalid("the file is damaged: its SHA-256 differs from its last 64 bytes");
      }
      Expect(State::kEnd, 0);
      return absl::OkStatus();
    case State::kEnd:
      break;
  }
  return absl::OkStatus();
}

absl::Status ArchiveReader::TakeVersion() const {
  if (gathered_.compare(0, kArchiveMagicBytes, kArchiveMagic) != 0) {
    return ArchiveInvalid("this is no exported document: it doesn't begin with DOCMEMAR");
  }
  const uint32_t version = DecodeLength(std::string_view(gathered_).substr(kArchiveMagicBytes));
  if (version == kArchiveVersion) return absl::OkStatus();
  const bool newer = version > kArchiveVersion;
  return StoreError(
      absl::StatusCode::kInvalidArgument, reason::kImportInvalid,
      absl::StrCat("the file has format version ", version, ", this docmemd reads version ",
                   kArchiveVersion,
                   newer ? ": it comes from a newer one; import it with that, or export it again "
                           "with this"
                         : ": it comes from an older one; export the document again with this"),
      {{"version", absl::StrCat(version)}, {"supported_version", absl::StrCat(kArchiveVersion)}});
}

absl::Status ArchiveReader::TakeManifest() {
  if (Xxh3Hex(gathered_) != manifest_digest_) {
    return ArchiveInvalid("the file is damaged: the manifest's checksum differs");
  }
  STORE_ASSIGN_OR_RETURN(manifest_, ParseManifest(gathered_));
  parts_ = PartsOf(manifest_);
  STORE_RETURN_IF_ERROR(sink_->OnManifest(manifest_));
  ExpectPart();
  return absl::OkStatus();
}

void ArchiveReader::ExpectPart() {
  if (next_part_ == parts_.size()) return Expect(State::kDigest, kArchiveDigestBytes);
  Expect(State::kParts, parts_[next_part_].file->bytes);
}

absl::Status ArchiveReader::TakePart() {
  const ArchivePart& part = parts_[next_part_++];
  if (Xxh3Hex(gathered_) != part.file->digest) {
    return ArchiveInvalid(
        absl::StrCat("the file is damaged: the checksum of its ", NameOf(part), " differs"));
  }
  STORE_RETURN_IF_ERROR(sink_->OnPart(part, std::move(gathered_)));
  ExpectPart();
  return absl::OkStatus();
}

}  // namespace docmem::store
