#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace docmem::store {

/// What is indexed of one collection.
struct CollectionWords {
  uint64_t documents = 0;
  uint64_t words = 0;   ///< of all texts
  uint64_t chunks = 0;  ///< of all texts
};

/// How one document has one term.
struct Posting {
  int64_t document = 0;
  uint32_t words = 0;  ///< of its text
  uint32_t in_title = 0;
  std::string_view in_chunks;  ///< packed
};

struct ScoredDocument {
  int64_t document = 0;
  double score = 0;
  double best_chunk = 0;
};

/// Fitted on all questions of the data sets in docs/evaluation.md; `bench/route_figures` chooses
/// anew on one half of them.
struct RankingConstants {
  double k1 = 2;             ///< how often a word must occur to count half of what it can
  double b = 0.75;           ///< how far a long text needs more of them; 0 to 1
  double chunk_share = 0.6;  ///< of the best chunk in a document's score; 0 to 1
  double fits = 0.23;        ///< the least score of a document that fits the question
};

/// BM25 of one question over one collection. For a text of `length` words (average `mean`) that has
/// the question's term t f times, title included:
///
///   bm25 = sum over t of  idf(t) * f / (f + k1 * (1 - b + b * length / mean))
///   idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)) for N documents, n of them with t, n at least 1
///
/// divided by the sum of all idf(t), which it approaches at best: 0 to 1. A document's score is
/// that of its best chunk and that of its whole text, in shares. A term that nobody has counts like
/// one that a single document has, so that the scale is the same in small collections.
class Ranking {
 public:
  explicit Ranking(const CollectionWords& collection, const RankingConstants& constants = {})
      : collection_(collection), constants_(constants) {}

  /// Begins the next term of the question, which `documents` have.
  void BeginTerm(uint64_t documents);
  /// A document that has the term begun last; once for each.
  void Add(const Posting& posting);
  /// The best `k`, best first; the one of the lower id among equals.
  std::vector<ScoredDocument> Best(size_t k) const;

 private:
  struct Sums {
    double whole = 0;
    std::vector<double> chunks;
  };

  // What a text gets for a term that it has `count` times.
  double Saturated(double count, double relative_length) const;

  const CollectionWords collection_;
  const RankingConstants constants_;
  double idf_ = 0;  // of the term begun last
  double attainable_ = 0;
  absl::flat_hash_map<int64_t, Sums> sums_;
};

}  // namespace docmem::store
