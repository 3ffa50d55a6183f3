#include "engine/text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace docmem::engine {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint64_t kFreeSlot = UINT64_MAX;  // no pair: ids are below 2^31
constexpr size_t kMergesBetweenChecks = 1 << 16;

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

size_t Hash(uint64_t pair) { return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> 20; }

}  // namespace

BpeModel::BpeModel(BpeTables tables) : byte_ids_(tables.byte_ids) {
  for (auto& [bytes, id] : tables.whole_pieces) whole_pieces_.emplace(bytes, id);
  slots_.resize(std::bit_ceil(2 * tables.merges.size() + 1), {kFreeSlot, 0, 0});
  uint32_t rank = 0;
  for (const BpeTables::Merge& merge : tables.merges) {
    const uint64_t pair = PairKey(merge.left, merge.right);
    Slot(pair) = {pair, rank++, merge.merged};
  }
}

BpeModel::Merge& BpeModel::Slot(uint64_t pair) noexcept {
  size_t at = Hash(pair);
  while (true) {
    Merge& slot = slots_[at++ & (slots_.size() - 1)];
    if (slot.pair == pair || slot.pair == kFreeSlot) return slot;
  }
}

const BpeModel::Merge* BpeModel::FindMerge(int32_t left, int32_t right) const noexcept {
  const uint64_t pair = PairKey(left, right);
  const Merge& slot = const_cast<BpeModel*>(this)->Slot(pair);
  return slot.pair == pair ? &slot : nullptr;
}

void BpeModel::AddCandidate(const Scratch& scratch, uint32_t position,
                            std::vector<uint64_t>* to) const {
  const Scratch::Symbol& left = scratch.symbols[position];
  if (left.next == kNone) return;
  const Merge* merge = FindMerge(left.id, scratch.symbols[left.next].id);
  if (merge != nullptr) to->push_back(static_cast<uint64_t>(merge->rank) << 32 | position);
}

void BpeModel::MergeAll(const CancelCheck& cancelled, Scratch* scratch) const {
  auto& symbols = scratch->symbols;
  auto& heap = scratch->candidates;
  const auto push = [&](uint32_t position) {
    const size_t before = heap.size();
    AddCandidate(*scratch, position, &heap);
    if (heap.size() > before) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  for (size_t steps = 1; !heap.empty(); ++steps) {
    if (steps % kMergesBetweenChecks == 0 && cancelled && cancelled()) {
      ThrowCancelled("the encoding of a text was cancelled");
    }
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint64_t candidate = heap.back();
    heap.pop_back();
    const auto position = static_cast<uint32_t>(candidate);
    Scratch::Symbol& left = symbols[position];
    if (left.id < 0 || left.next == kNone) continue;
    Scratch::Symbol& right = symbols[left.next];
    const Merge* merge = FindMerge(left.id, right.id);
    if (merge == nullptr || merge->rank != candidate >> 32) continue;
    left.id = merge->merged;
    left.next = right.next;
    right.id = -1;
    if (left.next != kNone) symbols[left.next].previous = position;
    push(position);
    if (left.previous != kNone) push(left.previous);
  }
}

void BpeModel::Encode(std::string_view piece, const CancelCheck& cancelled, Scratch* scratch,
                      std::vector<int32_t>* ids) const {
  if (const auto whole = whole_pieces_.find(piece); whole != whole_pieces_.end()) {
    ids->push_back(whole->second);
    return;
  }
  auto& symbols = scratch->symbols;
  symbols.clear();
  for (const char c : piece) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id < 0) continue;
    const auto position = static_cast<uint32_t>(symbols.size());
    symbols.push_back({id, position - 1, position + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = kNone;
  scratch->candidates.clear();
  for (uint32_t position = 0; position < symbols.size(); ++position) {
    AddCandidate(*scratch, position, &scratch->candidates);
  }
  MergeAll(cancelled, scratch);
  for (uint32_t at = 0; at != kNone; at = symbols[at].next) ids->push_back(symbols[at].id);
}

}  // namespace docmem::engine
