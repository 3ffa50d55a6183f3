#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/document_rows.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/digest.h"
#include "adapter_store/lexical/ranking.h"
#include "adapter_store/lexical/word_counts.h"
#include "adapter_store/names.h"
#include "adapter_store/registry/word_table.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/store_impl.h"

namespace docmem::store {
namespace {

// What a question may read; its most frequent words are left out first.
constexpr uint64_t kMaxPostings = 20000;

struct Term {
  int64_t term = 0;
  uint64_t documents = 0;
};

// The question's rarest words, as many as may be read.
absl::StatusOr<std::vector<Term>> ChooseTerms(Sql& sql, int64_t collection_id,
                                              const std::vector<int64_t>& terms) {
  std::vector<Term> counted;
  for (const int64_t term : terms) {
    STORE_ASSIGN_OR_RETURN(const uint64_t documents,
                           DocumentsWith(sql, collection_id, term, kMaxPostings + 1));
    counted.push_back({term, documents});
  }
  std::stable_sort(counted.begin(), counted.end(),
                   [](const Term& a, const Term& b) { return a.documents < b.documents; });
  uint64_t postings = 0;
  const auto end = std::find_if(counted.begin(), counted.end(), [&](const Term& term) {
    postings += term.documents;
    return postings > kMaxPostings;
  });
  counted.erase(end, counted.end());
  return counted;
}

absl::StatusOr<std::vector<ScoredDocument>> Score(Sql& sql, int64_t collection_id,
                                                  const std::string& question, size_t k) {
  STORE_ASSIGN_OR_RETURN(const CollectionWords words, WordsOfCollection(sql, collection_id));
  STORE_ASSIGN_OR_RETURN(const std::vector<Term> terms,
                         ChooseTerms(sql, collection_id, TermsOf(question)));
  Ranking ranking(words);
  for (const Term& term : terms) {
    ranking.BeginTerm(term.documents);
    STORE_RETURN_IF_ERROR(ScanPostings(sql, collection_id, term.term,
                                       [&](const Posting& posting) { ranking.Add(posting); }));
  }
  return ranking.Best(k);
}

}  // namespace

absl::StatusOr<RouteResult> StoreImpl::Route(const std::string& collection,
                                             const std::string& question, uint32_t k) {
  STORE_RETURN_IF_ERROR(CheckId("collection", collection));
  RouteResult result;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    result = {};
    STORE_ASSIGN_OR_RETURN(const CollectionRow owner, RequireCollection(sql, collection));
    if (!owner.settings.lexical_index) {
      return StoreError(absl::StatusCode::kFailedPrecondition, reason::kLexicalIndexOff,
                        absl::StrCat("collection '", collection,
                                     "' has no lexical index; switch on its setting "
                                     "lexical_index, or name a document"));
    }
    STORE_ASSIGN_OR_RETURN(const std::vector<ScoredDocument> scored,
                           Score(sql, owner.id, question, k));
    for (const ScoredDocument& one : scored) {
      STORE_ASSIGN_OR_RETURN(const std::optional<DocumentRow> row,
                             FindDocumentById(sql, one.document));
      if (!row.has_value() || row->collection_id != owner.id || !RequireReady(*row).ok()) continue;
      result.documents.push_back(
          {{collection, row->name}, row->spec.title, one.score, one.best_chunk});
    }
    return absl::OkStatus();
  }));
  result.abstained =
      result.documents.empty() || result.documents.front().score < RankingConstants().fits;
  return result;
}

absl::Status StoreImpl::CompleteIndex(const std::string& collection) {
  int64_t after = 0;
  for (;;) {
    std::optional<UnindexedDocument> next;
    STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
      STORE_ASSIGN_OR_RETURN(const CollectionRow owner, RequireCollection(sql, collection));
      STORE_ASSIGN_OR_RETURN(next, NextUnindexed(sql, owner.id, after));
      return absl::OkStatus();
    }));
    if (!next.has_value()) return absl::OkStatus();
    after = next->id;
    const absl::StatusOr<std::string> text = ReadText({collection, next->name});
    // Deleted meanwhile, or damaged and quarantined by now.
    if (!text.ok()) continue;
    const std::string sha256 = Sha256Hex(*text);
    const TextWords words = CountText(*text);
    STORE_RETURN_IF_ERROR(registry().Write([&](Sql& sql) -> absl::Status {
      STORE_ASSIGN_OR_RETURN(const std::optional<DocumentRow> row, FindDocumentById(sql, next->id));
      if (!row.has_value() || row->spec.text_sha256 != sha256) return absl::OkStatus();
      STORE_ASSIGN_OR_RETURN(const CollectionRow owner, RequireCollection(sql, collection));
      STORE_RETURN_IF_ERROR(DeleteWords(sql, row->id));
      return IndexDocument(sql, owner, *row, words);
    }));
  }
}

absl::Status StoreImpl::CompleteIndexes() {
  std::string after;
  for (;;) {
    std::vector<CollectionRow> rows;
    STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
      STORE_ASSIGN_OR_RETURN(rows, ListCollectionRows(sql, after, 100));
      return absl::OkStatus();
    }));
    for (const CollectionRow& row : rows) {
      after = row.name;
      if (row.settings.lexical_index) STORE_RETURN_IF_ERROR(CompleteIndex(row.name));
    }
    if (rows.empty()) return absl::OkStatus();
  }
}

}  // namespace docmem::store
