#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "adapter_store/lexical/ranking.h"
#include "adapter_store/lexical/word_counts.h"
#include "adapter_store/registry/registry.h"

namespace docmem::store {

/// Word statistics of documents. They go with their document's row; no query sees two collections.

using TitleWords = std::map<int64_t, uint32_t>;  // how often, by term

/// Of a document that has none.
absl::Status InsertWords(Sql& sql, int64_t collection_id, int64_t document_id,
                         const TextWords& text, const TitleWords& title);
/// Replaces what is known of its title; nothing happens to a document that has none.
absl::Status PutTitleWords(Sql& sql, int64_t document_id, const TitleWords& title);
absl::Status DeleteWords(Sql& sql, int64_t document_id);
absl::Status DeleteWordsOfCollection(Sql& sql, int64_t collection_id);

absl::StatusOr<CollectionWords> WordsOfCollection(Sql& sql, int64_t collection_id);
/// How many documents of the collection have the term; `most` where there are more.
absl::StatusOr<uint64_t> DocumentsWith(Sql& sql, int64_t collection_id, int64_t term,
                                       uint64_t most);
absl::Status ScanPostings(Sql& sql, int64_t collection_id, int64_t term,
                          absl::FunctionRef<void(const Posting&)> on_posting);

/// The next ready document behind `after` that has no words but its text in a file.
struct UnindexedDocument {
  int64_t id = 0;
  std::string name;
};
absl::StatusOr<std::optional<UnindexedDocument>> NextUnindexed(Sql& sql, int64_t collection_id,
                                                               int64_t after);

}  // namespace docmem::store
