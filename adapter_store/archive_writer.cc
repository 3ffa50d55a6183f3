#include "adapter_store/archive_writer.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/archive_layout.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/text_codec.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr uint32_t kPageSize = 1000;

ArchiveFile ToArchive(const StoredFile& file) { return {file.name, file.bytes, file.digest}; }

absl::Status Changed(const DocumentKey& key) {
  return StoreError(
      absl::StatusCode::kAborted, reason::kRevisionMismatch,
      absl::StrCat("document '", key.id, "' was changed while it was exported; export it again"));
}

absl::Status CheckReady(const Document& document) {
  const std::string& id = document.key.id;
  switch (document.state) {
    case DocumentState::kReady:
      return absl::OkStatus();
    case DocumentState::kQuarantined:
      return StoreError(
          absl::StatusCode::kDataLoss, reason::kDocumentQuarantined,
          absl::StrCat("document '", id, "' is quarantined: ", document.state_reason));
    case DocumentState::kBuilding:
    case DocumentState::kFailed:
      break;
  }
  return StoreError(absl::StatusCode::kFailedPrecondition, reason::kDocumentNotReady,
                    absl::StrCat("document '", id, "' is being built or its ingestion failed"));
}

// Oldest first.
absl::StatusOr<std::vector<Adapter>> AdaptersOf(AdapterStore& store, const DocumentKey& key) {
  std::vector<Adapter> adapters;
  PageRequest page{.size = kPageSize};
  do {
    STORE_ASSIGN_OR_RETURN(Page<Adapter> found, store.ListAdapters(key, page));
    std::move(found.items.begin(), found.items.end(), std::back_inserter(adapters));
    page.token = found.next_token;
  } while (!page.token.empty());
  std::reverse(adapters.begin(), adapters.end());
  return adapters;
}

ArchiveAdapter ToArchive(const Adapter& adapter) {
  ArchiveAdapter result{.version = adapter.version,
                        .state = adapter.state,
                        .hash = adapter.spec.hash,
                        .scope = adapter.spec.scope,
                        .prompt_format_digest = adapter.spec.prompt_format_digest,
                        .text_digest = adapter.spec.text_digest,
                        .training_job_id = adapter.spec.training_job_id};
  for (const StoredFile& file : adapter.files) result.files.push_back(ToArchive(file));
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArchiveWriter>> ArchiveWriter::Open(
    AdapterStore* store, const DocumentKey& key, std::map<std::string, std::string> model) {
  std::unique_ptr<ArchiveWriter> writer(new ArchiveWriter(store));
  writer->manifest_.model = std::move(model);
  STORE_RETURN_IF_ERROR(writer->Describe(key));
  return writer;
}

absl::Status ArchiveWriter::Describe(const DocumentKey& key) {
  STORE_ASSIGN_OR_RETURN(const Document document, store_->GetDocument(key));
  STORE_RETURN_IF_ERROR(CheckReady(document));
  STORE_ASSIGN_OR_RETURN(const std::vector<Adapter> adapters, AdaptersOf(*store_, key));
  manifest_.key = key;
  manifest_.spec = document.spec;
  manifest_.document_tokens = document.document_tokens;
  manifest_.default_cache_id = document.default_cache_id;
  manifest_.current_adapter_version = document.current_adapter_version;
  manifest_.evaluation = document.evaluation;
  STORE_RETURN_IF_ERROR(ReadText(document));
  for (const Adapter& adapter : adapters) {
    manifest_.adapters.push_back(ToArchive(adapter));
    files_.insert(files_.end(), adapter.files.begin(), adapter.files.end());
  }
  for (const Cache& cache : document.caches) {
    manifest_.caches.push_back({cache.spec.id, cache.spec.system_text_digest,
                                cache.spec.system_text, ToArchive(cache.file)});
    files_.push_back(cache.file);
  }
  STORE_ASSIGN_OR_RETURN(const Document now, store_->GetDocument(key));
  return now.row == document.row && now.revision == document.revision ? absl::OkStatus()
                                                                      : Changed(key);
}

absl::Status ArchiveWriter::ReadText(const Document& document) {
  if (!document.text.has_value()) return absl::OkStatus();
  STORE_ASSIGN_OR_RETURN(text_, store_->ReadText(document.key));
  manifest_.text = ArchiveFile{kTextFileName, text_.size(), Xxh3Hex(text_)};
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> ArchiveWriter::Next() {
  while (given_ == piece_.size() && state_ != State::kEnd) {
    given_ = 0;
    STORE_RETURN_IF_ERROR(Fill());
  }
  const std::string_view next = std::string_view(piece_).substr(given_, kPieceBytes);
  given_ += next.size();
  total_bytes_ += next.size();
  digest_.Update(next);
  return next;
}

absl::Status ArchiveWriter::Fill() {
  switch (state_) {
    case State::kHeader: {
      const std::string manifest = WriteManifest(manifest_);
      if (manifest.size() > kMaxManifestBytes) {
        return StoreError(absl::StatusCode::kFailedPrecondition, reason::kLimitExceeded,
                          "the document has too many caches and adapters; delete some");
      }
      piece_ = absl::StrCat(kArchiveMagic, EncodeLength(kArchiveVersion),
                            EncodeLength(static_cast<uint32_t>(manifest.size())), Xxh3Hex(manifest),
                            manifest);
      state_ = State::kText;
      return absl::OkStatus();
    }
    case State::kText:
      piece_ = std::exchange(text_, std::string());
      state_ = State::kFiles;
      return absl::OkStatus();
    case State::kFiles: {
      if (next_file_ == files_.size()) {
        piece_ = digest_.Hex();
        state_ = State::kDigest;
        return absl::OkStatus();
      }
      const StoredFile& file = files_[next_file_++];
      piece_.resize(file.bytes);
      const absl::Status read = store_->ReadFile(
          file, std::as_writable_bytes(std::span<char>(piece_.data(), piece_.size())));
      return absl::IsNotFound(read) ? Changed(manifest_.key) : read;
    }
    case State::kDigest:
      piece_.clear();
      state_ = State::kEnd;
      return absl::OkStatus();
    case State::kEnd:
      break;
  }
  return absl::OkStatus();
}

}  // namespace docmem::store
