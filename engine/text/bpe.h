#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/text/tokenizer.h"

namespace docmem::engine {

// What a byte-level BPE model consists of.
struct BpeTables {
  struct Merge {
    int32_t left;
    int32_t right;
    int32_t merged;
  };

  std::array<int32_t, 256> byte_ids;  // -1: the vocabulary lacks the byte, which is left out
  std::vector<Merge> merges;          // the first is applied first; of equal pairs the last counts
  // With `ignore_merges`: the tokens that a whole piece may become without merging, by their bytes.
  std::unordered_map<std::string, int32_t> whole_pieces;
};

// Encodes pieces of text by merging pairs of neighbours, of all pairs the one of the lowest rank
// first, of equal ones the leftmost. Immutable, thread-safe.
class BpeModel {
 public:
  explicit BpeModel(BpeTables tables);

  // The working memory of a series of encodes; reusable, one per thread.
  struct Scratch {
    struct Symbol {
      int32_t id;  // -1: merged into its left neighbour
      uint32_t previous;
      uint32_t next;
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> candidates;  // a heap of rank << 32 | position
  };

  // Appends the ids of one piece of at most 4 GB. Time O(n log n). Throws kCancelled.
  void Encode(std::string_view piece, const CancelCheck& cancelled, Scratch* scratch,
              std::vector<int32_t>* ids) const;

 private:
  struct Merge {
    uint64_t pair;  // left << 32 | right
    uint32_t rank;
    int32_t merged;
  };

  // Null if the pair doesn't merge.
  const Merge* FindMerge(int32_t left, int32_t right) const noexcept;
  Merge& Slot(uint64_t pair) noexcept;
  void AddCandidate(const Scratch& scratch, uint32_t position, std::vector<uint64_t>* to) const;
  void MergeAll(const CancelCheck& cancelled, Scratch* scratch) const;

  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::array<int32_t, 256> byte_ids_;
  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> whole_pieces_;
  std::vector<Merge> slots_;  // a hash table with open addressing; its size is a power of two
};

}  // namespace docmem::engine
