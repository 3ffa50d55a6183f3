#include "adapter_store/lexical/word_counts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "adapter_store/files/digest.h"
#include "adapter_store/lexical/word_reader.h"

namespace docmem::store {
namespace {

constexpr uint32_t kChunkWords = 64;

// Numbers are digits of five bits, the lowest first, in characters from '0'; all but the last have
// a sixth bit.
constexpr char kZero = '0';
constexpr uint32_t kMore = 32;
constexpr uint32_t kDigitBits = 5;

int64_t TermOf(std::string_view stem) { return static_cast<int64_t>(Xxh3Of(stem)); }

void PackNumber(uint32_t number, std::string& packed) {
  for (; number >= kMore; number >>= kDigitBits) {
    packed += static_cast<char>(kZero + (number % kMore + kMore));
  }
  packed += static_cast<char>(kZero + number);
}

std::optional<uint32_t> UnpackNumber(std::string_view& packed) {
  uint32_t number = 0;
  for (uint32_t shift = 0; shift < 32 && !packed.empty(); shift += kDigitBits) {
    const auto digit = static_cast<uint32_t>(static_cast<unsigned char>(packed.front()) - kZero);
    packed.remove_prefix(1);
    if (digit >= 2 * kMore) return std::nullopt;
    number |= digit % kMore << shift;
    if (digit < kMore) return number;
  }
  return std::nullopt;
}

}  // namespace

uint32_t ChunksOf(uint32_t words) {
  return std::max(1u, (std::min(words, kMaxWords) + kChunkWords / 2) / kChunkWords);
}

TextWords CountText(std::string_view text) {
  std::vector<std::pair<int64_t, uint32_t>> places;  // term, then position
  WordReader().Read(text, [&](std::string_view stem) {
    if (places.size() == kMaxWords) return;
    places.emplace_back(TermOf(stem), static_cast<uint32_t>(places.size()));
  });
  std::sort(places.begin(), places.end());
  TextWords result;
  result.words = static_cast<uint32_t>(places.size());
  const uint32_t chunks = ChunksOf(result.words);
  for (size_t i = 0; i < places.size();) {
    const int64_t term = places[i].first;
    std::vector<ChunkCount> counts;
    for (; i < places.size() && places[i].first == term; ++i) {
      const auto chunk = static_cast<uint32_t>(uint64_t{places[i].second} * chunks / result.words);
      if (counts.empty() || counts.back().chunk != chunk) counts.push_back({chunk, 0});
      ++counts.back().count;
    }
    result.in_chunks.emplace_hint(result.in_chunks.end(), term, PackCounts(counts));
  }
  return result;
}

std::map<int64_t, uint32_t> CountTitle(std::string_view title) {
  std::map<int64_t, uint32_t> counts;
  WordReader().Read(title, [&](std::string_view stem) { ++counts[TermOf(stem)]; });
  return counts;
}

std::vector<int64_t> TermsOf(std::string_view question) {
  std::vector<int64_t> terms;
  absl::flat_hash_set<int64_t> seen;
  WordReader().Read(question, [&](std::string_view stem) {
    const int64_t term = TermOf(stem);
    if (terms.size() < kMaxQuestionWords && seen.insert(term).second) terms.push_back(term);
  });
  return terms;
}

std::string PackCounts(const std::vector<ChunkCount>& counts) {
  std::string packed;
  uint32_t next = 0;
  for (const ChunkCount& count : counts) {
    PackNumber(count.chunk - next, packed);
    PackNumber(count.count, packed);
    next = count.chunk + 1;
  }
  return packed;
}

void UnpackCounts(std::string_view packed, uint32_t chunks,
                  absl::FunctionRef<void(ChunkCount)> on_count) {
  uint32_t next = 0;
  while (!packed.empty()) {
    const std::optional<uint32_t> skipped = UnpackNumber(packed);
    const std::optional<uint32_t> count = skipped ? UnpackNumber(packed) : std::nullopt;
    if (!count || *count == 0 || next >= chunks || *skipped >= chunks - next) return;
    on_count({next + *skipped, *count});
    next += *skipped + 1;
  }
}

}  // namespace docmem::store
