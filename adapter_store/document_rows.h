#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/artifact_writer.h"
#include "adapter_store/lexical/word_counts.h"
#include "adapter_store/registry/artifact_tables.h"
#include "adapter_store/registry/collection_table.h"
#include "adapter_store/registry/document_table.h"
#include "adapter_store/registry/intent_table.h"
#include "adapter_store/types.h"

namespace docmem::store {

/// Steps that several calls of the store share; each runs inside a transaction of its caller.

/// NOT_FOUND where it isn't.
absl::StatusOr<CollectionRow> RequireCollection(Sql& sql, const std::string& name);
absl::StatusOr<DocumentRow> RequireDocument(Sql& sql, const DocumentKey& key);
/// FAILED_PRECONDITION unless it is ready, DATA_LOSS where it is quarantined.
absl::Status RequireReady(const DocumentRow& row);
/// Both of them.
absl::StatusOr<DocumentRow> RequireReadyDocument(Sql& sql, const DocumentKey& key);
/// ABORTED unless `expected` is 0 or `actual`.
absl::Status CheckRevision(uint64_t expected, uint64_t actual);
/// RESOURCE_EXHAUSTED when the collection would hold more than its settings allow.
absl::Status CheckQuota(Sql& sql, const CollectionRow& collection, uint64_t new_documents,
                        uint64_t new_bytes);

/// The document with caches and counts. Where one of its rows is damaged it comes as kQuarantined.
absl::StatusOr<Document> LoadDocument(Sql& sql, const DocumentRow& row,
                                      const std::string& collection);
absl::StatusOr<Adapter> LoadAdapter(Sql& sql, const AdapterRow& row, const DocumentRow& document,
                                    const DocumentKey& key);

/// Stores changed columns under the next revision.
absl::Status TouchDocument(Sql& sql, DocumentRow& row, absl::Time now);

/// Inserts rows for caches whose files are written. Where an undamaged cache of that id exists it
/// stays and the new file goes to `deleted`. Returns how many were inserted.
struct WrittenCache {
  const CacheSpec* spec = nullptr;
  const StoredFile* file = nullptr;
};
absl::StatusOr<uint32_t> AddCaches(Sql& sql, const DocumentRow& document,
                                   const std::vector<WrittenCache>& caches, absl::Time now,
                                   std::vector<IntentFile>& deleted);
/// A cache never outlives the adapter that wrote or scored it: NOT_FOUND without it.
absl::Status RequireMakers(Sql& sql, const DocumentRow& document, const CacheSpec& spec);
/// Rows for the files of an adapter that has its row; the last file is the packed one.
absl::Status InsertAdapterFiles(Sql& sql, const AdapterRow& row,
                                const std::vector<StoredFile>& files);
/// Keeps the words of text and title where the collection has a lexical index. The text's are
/// counted before: that takes a while, for which other writers would wait.
absl::Status IndexDocument(Sql& sql, const CollectionRow& collection, const DocumentRow& row,
                           const TextWords& words);
/// Counts the words of a changed title where those of the text are kept.
absl::Status IndexTitle(Sql& sql, const DocumentRow& row);
/// Removes cache and file rows; the files go to `deleted`. Mends the document's default.
absl::Status RemoveCache(Sql& sql, DocumentRow& document, const CacheRow& cache,
                         std::vector<IntentFile>& deleted);
/// Puts the files that belong to a cache, an adapter, or (both 0) to the document itself in
/// `deleted`. Checkpoints of training jobs stay.
absl::Status DoomFiles(Sql& sql, int64_t document_id, int64_t cache_id, int64_t adapter_id,
                       std::vector<IntentFile>& deleted);
/// Puts the file of the job's checkpoint in `deleted`.
absl::Status DoomCheckpoint(Sql& sql, int64_t job_id, std::vector<IntentFile>& deleted);
/// Is the row damaged, and the file more than a checkpoint, which only its job needs?
bool SpoilsDocument(const FileRow& file);
/// The document's rows; all its files go to `deleted`.
absl::Status RemoveDocument(Sql& sql, int64_t document_id, std::vector<IntentFile>& deleted);

}  // namespace docmem::store
