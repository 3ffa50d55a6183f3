#include "adapter_store/lexical/ranking.h"

#include <algorithm>
#include <cmath>

#include "adapter_store/lexical/word_counts.h"

namespace docmem::store {
namespace {

// Without a word in the whole collection every text is as long as the others.
double Relative(double length, uint64_t total, uint64_t pieces) {
  return total == 0 ? 1 : length * static_cast<double>(pieces) / static_cast<double>(total);
}

}  // namespace

double Ranking::Saturated(double count, double relative_length) const {
  const double b = constants_.b;
  return count / (count + constants_.k1 * (1 - b + b * relative_length));
}

void Ranking::BeginTerm(uint64_t documents) {
  const double with = std::max<double>(1, static_cast<double>(documents));
  const auto all = static_cast<double>(collection_.documents);
  idf_ = std::log(1 + std::max(0.0, all - with + 0.5) / (with + 0.5));
  attainable_ += idf_;
}

void Ranking::Add(const Posting& posting) {
  const uint32_t chunks = ChunksOf(posting.words);
  Sums& sums = sums_[posting.document];
  sums.chunks.resize(chunks);
  const double words = posting.words;
  const double chunk_length = Relative(words / chunks, collection_.words, collection_.chunks);
  const double in_title = posting.in_title;
  const double title_alone = Saturated(in_title, chunk_length);
  if (posting.in_title > 0) {
    for (double& sum : sums.chunks) sum += idf_ * title_alone;
  }
  double count = in_title;
  UnpackCounts(posting.in_chunks, chunks, [&](ChunkCount in_chunk) {
    count += in_chunk.count;
    sums.chunks[in_chunk.chunk] +=
        idf_ * (Saturated(in_title + in_chunk.count, chunk_length) - title_alone);
  });
  sums.whole += idf_ * Saturated(count, Relative(words, collection_.words, collection_.documents));
}

std::vector<ScoredDocument> Ranking::Best(size_t k) const {
  std::vector<ScoredDocument> scored;
  if (attainable_ == 0) return scored;
  scored.reserve(sums_.size());
  for (const auto& [document, sums] : sums_) {
    const double chunk = *std::max_element(sums.chunks.begin(), sums.chunks.end()) / attainable_;
    const double whole = sums.whole / attainable_;
    const double share = constants_.chunk_share;
    scored.push_back({document, (1 - share) * whole + share * chunk, chunk});
  }
  const auto better = [](const ScoredDocument& a, const ScoredDocument& b) {
    return a.score != b.score ? a.score > b.score : a.document < b.document;
  };
  const auto end = scored.begin() + static_cast<ptrdiff_t>(std::min(k, scored.size()));
  std::partial_sort(scored.begin(), end, scored.end(), better);
  scored.erase(end, scored.end());
  return scored;
}

}  // namespace docmem::store
