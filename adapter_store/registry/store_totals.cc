#include "adapter_store/registry/store_totals.h"

#include "adapter_store/registry/artifact_tables.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/types.h"

namespace docmem::store {
namespace {

uint64_t Sum(const SqlValue& value) { return static_cast<uint64_t>(IntOf(value)); }

}  // namespace

absl::StatusOr<StoreTotals> TotalsOf(Sql& sql) {
  StoreTotals totals;
  STORE_RETURN_IF_ERROR(sql.Query(
      "SELECT (SELECT COUNT(*) FROM collections), (SELECT COUNT(*) FROM documents), "
      "(SELECT COUNT(*) FROM documents WHERE state = $1), (SELECT COUNT(*) FROM caches), "
      "(SELECT COUNT(*) FROM adapters), (SELECT COUNT(*) FROM files WHERE quarantine <> '')",
      {static_cast<int64_t>(DocumentState::kQuarantined)}, [&](const SqlRow& row) {
        totals.collections = Sum(row[0]);
        totals.documents = Sum(row[1]);
        totals.quarantined_documents = Sum(row[2]);
        totals.caches = Sum(row[3]);
        totals.adapters = Sum(row[4]);
        totals.quarantined_files = Sum(row[5]);
        return absl::OkStatus();
      }));
  STORE_RETURN_IF_ERROR(sql.Query("SELECT role, COUNT(*), SUM(bytes) FROM files GROUP BY role", {},
                                  [&](const SqlRow& row) {
                                    switch (KindOf(static_cast<FileRole>(IntOf(row[0])))) {
                                      case ArtifactKind::kText:
                                        totals.texts += Sum(row[1]);
                                        totals.text_bytes += Sum(row[2]);
                                        break;
                                      case ArtifactKind::kCache:
                                        totals.cache_bytes += Sum(row[2]);
                                        break;
                                      case ArtifactKind::kAdapter:
                                        totals.adapter_bytes += Sum(row[2]);
                                        break;
                                      case ArtifactKind::kCheckpoint:
                                        totals.checkpoints += Sum(row[1]);
                                        totals.checkpoint_bytes += Sum(row[2]);
                                        break;
                                    }
                                    return absl::OkStatus();
                                  }));
  return totals;
}

}  // namespace docmem::store
