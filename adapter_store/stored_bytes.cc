#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/document_rows.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/text_codec.h"
#include "adapter_store/names.h"
#include "adapter_store/registry/store_totals.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/store_impl.h"

namespace docmem::store {
namespace {

const char* NameOf(ArtifactKind kind) {
  switch (kind) {
    case ArtifactKind::kText:
      return "text";
    case ArtifactKind::kCache:
      return "cache";
    case ArtifactKind::kAdapter:
      return "adapter";
    case ArtifactKind::kCheckpoint:
      return "checkpoint";
  }
  return "artifact";
}

absl::Status Damaged(ArtifactKind kind, const std::string& why) {
  return StoreError(
      absl::StatusCode::kDataLoss, reason::kArtifactDamaged,
      absl::StrCat("the stored ", NameOf(kind), " is damaged and quarantined: ", why));
}

}  // namespace

absl::Status StoreImpl::ReadFile(const StoredFile& file, std::span<std::byte> buffer) {
  const auto find = [&](std::optional<FileRow>& row) {
    return registry().Read([&](Sql& sql) -> absl::Status {
      STORE_ASSIGN_OR_RETURN(row, FindFile(sql, file.id));
      return absl::OkStatus();
    });
  };
  const absl::Status gone =
      absl::NotFoundError(absl::StrCat("the ", NameOf(file.kind), " was deleted meanwhile"));
  std::optional<FileRow> row;
  STORE_RETURN_IF_ERROR(find(row));
  if (!row.has_value()) return gone;
  const StoredFile& stored = row->file;
  if (stored.quarantined) return Damaged(stored.kind, stored.quarantine_reason);
  if (buffer.size() != stored.bytes) {
    return absl::InternalError(absl::StrCat("a buffer of ", buffer.size(),
                                            " bytes was given for a file of ", stored.bytes));
  }
  absl::Status status = parts_.artifacts->Read({stored.id, stored.kind}, stored.digest, buffer);
  if (absl::IsNotFound(status)) {
    STORE_RETURN_IF_ERROR(find(row));
    if (!row.has_value()) return gone;
  } else if (!absl::IsDataLoss(status) && !absl::IsFailedPrecondition(status)) {
    return status;
  }
  const std::string why(status.message());
  Quarantine(stored, why).IgnoreError();
  return Damaged(stored.kind, why);
}

absl::StatusOr<std::string> StoreImpl::ReadText(const DocumentKey& key) {
  STORE_ASSIGN_OR_RETURN(const Document document, GetDocument(key));
  if (document.state == DocumentState::kQuarantined || !document.text.has_value()) {
    STORE_RETURN_IF_ERROR(
        registry().Read([&](Sql& sql) { return RequireReadyDocument(sql, key).status(); }));
    return StoreError(absl::StatusCode::kFailedPrecondition, reason::kTextNotRetained,
                      absl::StrCat("the text of document '", key.id, "' isn't retained"));
  }
  std::vector<std::byte> frame(document.text->bytes);
  STORE_RETURN_IF_ERROR(ReadFile(*document.text, frame));
  absl::StatusOr<std::string> text = DecompressText(frame, document.spec.text_bytes);
  if (text.ok()) return text;
  const std::string why(text.status().message());
  Quarantine(*document.text, why).IgnoreError();
  return Damaged(ArtifactKind::kText, why);
}

absl::Status StoreImpl::Quarantine(const StoredFile& file, const std::string& why) {
  return registry().Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(std::optional<FileRow> row, FindFile(sql, file.id));
    if (!row.has_value() || row->file.quarantined) return absl::OkStatus();
    row->file.quarantine_reason = why.empty() ? "damaged" : StorableReason(why);
    return UpdateFileRow(sql, *row);
  });
}

absl::StatusOr<std::optional<std::string>> StoreImpl::GetSetting(const std::string& key) {
  STORE_RETURN_IF_ERROR(CheckId("setting", key));
  std::optional<std::string> value;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(value, FindSetting(sql, key));
    return absl::OkStatus();
  }));
  return value;
}

absl::Status StoreImpl::PutSetting(const std::string& key, const std::string& value) {
  constexpr size_t kMaxSetting = 65536;
  STORE_RETURN_IF_ERROR(CheckId("setting", key));
  STORE_RETURN_IF_ERROR(CheckText("setting", value, kMaxSetting));
  return registry().Write([&](Sql& sql) { return PutSettingRow(sql, key, value); });
}

absl::StatusOr<StoreStats> StoreImpl::Stats() {
  StoreTotals totals;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(totals, TotalsOf(sql));
    return absl::OkStatus();
  }));
  StoreStats stats;
  stats.budget_bytes = parts_.artifacts->budget().limit();
  stats.used_bytes = parts_.artifacts->budget().used();
  stats.reserved_bytes = parts_.artifacts->budget().reserved();
  stats.text = {totals.texts, totals.text_bytes};
  stats.cache = {totals.caches, totals.cache_bytes};
  stats.adapter = {totals.adapters, totals.adapter_bytes};
  stats.checkpoint = {totals.checkpoints, totals.checkpoint_bytes};
  stats.collections = totals.collections;
  stats.documents = totals.documents;
  stats.quarantined_documents = totals.quarantined_documents;
  stats.quarantined_files = totals.quarantined_files;
  stats.dropped_jobs = dropped_jobs_;
  stats.orphans_collected = parts_.publisher->orphans_collected();
  stats.orphan_bytes_collected = parts_.publisher->orphan_bytes_collected();
  return stats;
}

}  // namespace docmem::store
