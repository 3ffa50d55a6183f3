#include "adapter_store/registry/word_table.h"

#include <algorithm>

#include "adapter_store/registry/artifact_tables.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

// Of a damaged database too, whose numbers could be anything.
uint32_t CountOf(const SqlValue& value) {
  return static_cast<uint32_t>(std::clamp<int64_t>(IntOf(value), 0, kMaxWords));
}

constexpr char kPutPosting[] =
    "INSERT INTO word_postings (collection_id, term, document_id, words, in_title, in_chunks) "
    "VALUES ($1, $2, $3, $4, $5, $6) "
    "ON CONFLICT (collection_id, term, document_id) DO UPDATE SET in_title = excluded.in_title";

struct IndexedText {
  int64_t collection_id = 0;
  int64_t words = 0;
};

absl::StatusOr<std::optional<IndexedText>> FindText(Sql& sql, int64_t document_id) {
  std::optional<IndexedText> text;
  STORE_RETURN_IF_ERROR(
      sql.Query("SELECT collection_id, words FROM word_documents WHERE document_id = $1",
                {document_id}, [&](const SqlRow& row) {
                  text = IndexedText{IntOf(row[0]), IntOf(row[1])};
                  return absl::OkStatus();
                }));
  return text;
}

// To a document of which no word is known to be in the title.
absl::Status AddTitle(Sql& sql, int64_t document_id, const IndexedText& text,
                      const TitleWords& title) {
  for (const auto& [term, count] : title) {
    STORE_RETURN_IF_ERROR(sql.Execute(kPutPosting, {text.collection_id, term, document_id,
                                                    text.words, int64_t{count}, std::string()}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InsertWords(Sql& sql, int64_t collection_id, int64_t document_id,
                         const TextWords& text, const TitleWords& title) {
  STORE_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO word_documents (document_id, collection_id, words, chunks) "
      "VALUES ($1, $2, $3, $4)",
      {document_id, collection_id, int64_t{text.words}, int64_t{ChunksOf(text.words)}}));
  for (const auto& [term, in_chunks] : text.in_chunks) {
    STORE_RETURN_IF_ERROR(sql.Execute(kPutPosting, {collection_id, term, document_id,
                                                    int64_t{text.words}, int64_t{0}, in_chunks}));
  }
  return AddTitle(sql, document_id, {collection_id, text.words}, title);
}

absl::Status PutTitleWords(Sql& sql, int64_t document_id, const TitleWords& title) {
  STORE_ASSIGN_OR_RETURN(const std::optional<IndexedText> text, FindText(sql, document_id));
  if (!text.has_value()) return absl::OkStatus();
  STORE_RETURN_IF_ERROR(sql.Execute(
      "DELETE FROM word_postings WHERE document_id = $1 AND in_chunks = ''", {document_id}));
  STORE_RETURN_IF_ERROR(
      sql.Execute("UPDATE word_postings SET in_title = 0 WHERE document_id = $1 AND in_title > 0",
                  {document_id}));
  return AddTitle(sql, document_id, *text, title);
}

absl::Status DeleteWords(Sql& sql, int64_t document_id) {
  return sql.Execute("DELETE FROM word_documents WHERE document_id = $1", {document_id});
}

absl::Status DeleteWordsOfCollection(Sql& sql, int64_t collection_id) {
  return sql.Execute("DELETE FROM word_documents WHERE collection_id = $1", {collection_id});
}

absl::StatusOr<CollectionWords> WordsOfCollection(Sql& sql, int64_t collection_id) {
  CollectionWords words;
  STORE_RETURN_IF_ERROR(
      sql.Query("SELECT COUNT(*), COALESCE(SUM(words), 0), COALESCE(SUM(chunks), 0) "
                "FROM word_documents WHERE collection_id = $1",
                {collection_id}, [&](const SqlRow& row) {
                  words.documents = static_cast<uint64_t>(IntOf(row[0]));
                  words.words = static_cast<uint64_t>(IntOf(row[1]));
                  words.chunks = static_cast<uint64_t>(IntOf(row[2]));
                  return absl::OkStatus();
                }));
  return words;
}

absl::StatusOr<uint64_t> DocumentsWith(Sql& sql, int64_t collection_id, int64_t term,
                                       uint64_t most) {
  uint64_t documents = 0;
  STORE_RETURN_IF_ERROR(
      sql.Query("SELECT COUNT(*) FROM (SELECT 1 FROM word_postings "
                "WHERE collection_id = $1 AND term = $2 LIMIT $3) AS few",
                {collection_id, term, static_cast<int64_t>(most)}, [&](const SqlRow& row) {
                  documents = static_cast<uint64_t>(IntOf(row[0]));
                  return absl::OkStatus();
                }));
  return documents;
}

absl::Status ScanPostings(Sql& sql, int64_t collection_id, int64_t term,
                          absl::FunctionRef<void(const Posting&)> on_posting) {
  return sql.Query(
      "SELECT document_id, words, in_title, in_chunks FROM word_postings "
      "WHERE collection_id = $1 AND term = $2",
      {collection_id, term}, [&](const SqlRow& row) {
        const auto* in_chunks = std::get_if<std::string>(&row[3]);
        on_posting({IntOf(row[0]), CountOf(row[1]), CountOf(row[2]),
                    in_chunks == nullptr ? std::string_view() : *in_chunks});
        return absl::OkStatus();
      });
}

absl::StatusOr<std::optional<UnindexedDocument>> NextUnindexed(Sql& sql, int64_t collection_id,
                                                               int64_t after) {
  std::optional<UnindexedDocument> next;
  STORE_RETURN_IF_ERROR(sql.Query(
      "SELECT id, name FROM documents WHERE collection_id = $1 AND id > $2 AND state = $3 "
      "AND NOT EXISTS (SELECT 1 FROM word_documents WHERE document_id = documents.id) "
      "AND EXISTS (SELECT 1 FROM files WHERE document_id = documents.id AND role = $4) "
      "ORDER BY id LIMIT 1",
      {collection_id, after, static_cast<int64_t>(DocumentState::kReady),
       static_cast<int64_t>(FileRole::kText)},
      [&](const SqlRow& row) {
        next = UnindexedDocument{IntOf(row[0]), TextOf(row[1])};
        return absl::OkStatus();
      }));
  return next;
}

}  // namespace docmem::store
