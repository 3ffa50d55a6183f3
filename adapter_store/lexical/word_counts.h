#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

namespace docmem::store {

/// What the index knows of texts: how often each word occurs in each chunk. A word is kept as its
/// term, the 64-bit hash of its stem, so the registry holds no word of a document in the clear.

/// Words of a text that count; those behind aren't indexed.
inline constexpr uint32_t kMaxWords = uint32_t{1} << 20;
/// Different words of a question that count.
inline constexpr size_t kMaxQuestionWords = 512;

/// A text is cut into chunks of equal length, about 64 words without the function words: some 120
/// words of running English. At least one.
uint32_t ChunksOf(uint32_t words);

struct TextWords {
  uint32_t words = 0;
  std::map<int64_t, std::string> in_chunks;  ///< by term, packed
};

TextWords CountText(std::string_view text);
std::map<int64_t, uint32_t> CountTitle(std::string_view title);
/// Each term once, in the order of the question.
std::vector<int64_t> TermsOf(std::string_view question);

struct ChunkCount {
  uint32_t chunk = 0;
  uint32_t count = 0;  ///< from 1
  bool operator==(const ChunkCount&) const = default;
};

/// As printable ASCII, two bytes in the usual case. `counts` by ascending chunk.
std::string PackCounts(const std::vector<ChunkCount>& counts);
/// Stops where `packed` is damaged, so that chunks ascend and stay below `chunks`.
void UnpackCounts(std::string_view packed, uint32_t chunks,
                  absl::FunctionRef<void(ChunkCount)> on_count);

}  // namespace docmem::store
