#include "engine/kernels/kernels.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

struct Block {
  size_t capacity = 0;
  std::unique_ptr<void, decltype(&std::free)> memory{nullptr, &std::free};
};

// Blocks in use are the first `depth`.
struct Arena {
  std::vector<Block> blocks;
  size_t depth = 0;
};

thread_local Arena arena;

constexpr size_t kAlignment = 64;

#ifdef DOCMEM_X86_KERNELS
const KernelTable kBf16Table = [] {
  KernelTable table = vector_tables::kAvx512;
  table.path = CpuPath::kAvx512Bf16;
  table.linear = Bf16Linear;
  table.attend_causal = Bf16AttendCausal;
  return table;
}();

const KernelTable kAmxTable = [] {
  KernelTable table = vector_tables::kAvx512;
  table.path = CpuPath::kAmx;
  table.linear = AmxLinear;
  table.lora_down = AmxLoraDown;
  table.lora_up = AmxLoraUp;
  return table;
}();
#endif

}  // namespace

Scratch::Scratch(size_t bytes) {
  if (arena.depth == arena.blocks.size()) arena.blocks.emplace_back();
  Block& block = arena.blocks[arena.depth];
  if (block.capacity < bytes) {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    block.memory.reset(std::aligned_alloc(kAlignment, rounded));
    block.capacity = block.memory ? rounded : 0;
    if (!block.memory) throw std::bad_alloc();
  }
  ++arena.depth;
  memory_ = block.memory.get();
}

Scratch::~Scratch() { --arena.depth; }

const KernelTable& KernelsOf(CpuPath path) {
  switch (path) {
#ifdef DOCMEM_X86_KERNELS
    case CpuPath::kAmx:
      return kAmxTable;
    case CpuPath::kAvx512Bf16:
      return kBf16Table;
    case CpuPath::kAvx512:
      return vector_tables::kAvx512;
    case CpuPath::kAvx2:
      return vector_tables::kAvx2;
#endif
    default:
      return vector_tables::kPortable;
  }
}

const KernelTable& BestKernels() {
  static const KernelTable& best = KernelsOf(UsableCpuPaths().back());
  return best;
}

}  // namespace docmem::engine
