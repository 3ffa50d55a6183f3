// Peak memory of a prefill against the bound of its header, counted by an allocator of our own.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include "engine/compression/prefill.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};

// Counts what malloc really gave, so that the deleter needs no size.
class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    constexpr size_t kAlignment = 64;
    const size_t whole = (bytes + kAlignment) / kAlignment * kAlignment;
    void* block = std::aligned_alloc(kAlignment, whole);
    if (block == nullptr) throw std::bad_alloc();
    const int64_t live = live_bytes += static_cast<int64_t>(malloc_usable_size(block));
    peak_bytes = std::max<int64_t>(peak_bytes, live);
    return {block, block, &Free, at::Device(at::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void Free(void* block) {
    live_bytes -= static_cast<int64_t>(malloc_usable_size(block));
    std::free(block);
  }
};

int64_t KeptBytes(const std::vector<KeptRows>& results) {
  int64_t bytes = 0;
  for (const KeptRows& rows : results) {
    for (const at::Tensor& tensor : {rows.keys, rows.values, rows.positions, rows.offsets}) {
      bytes += static_cast<int64_t>(tensor.nbytes());
    }
  }
  return bytes;
}

class PrefillMemory : public ::testing::TestWithParam<std::tuple<const char*, at::ScalarType>> {
 protected:
  PrefillMemory() { c10::SetCPUAllocator(&counting_, /*priority=*/200); }
  ~PrefillMemory() override {
    c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), /*priority=*/200);
  }

 private:
  static CountingAllocator counting_;
};

CountingAllocator PrefillMemory::counting_;

TEST_P(PrefillMemory, StaysWithinTheBoundAboveWeightsAndKeptRows) {
  const auto& [name, dtype] = GetParam();
  const Transformer model =
      testing::LoadModel(testing::Reference(std::string("models/") + name), dtype);
  const int64_t context = std::getenv("DOCMEM_LONG") == nullptr ? 12'000 : 100'000;
  const int64_t element = static_cast<int64_t>(c10::elementSize(dtype));
  const ModelConfig& config = model.config();
  const int64_t layer_kv = 2 * context * config.kv_heads * config.head_dim * element;
  const double bound =
      2.5 * static_cast<double>(layer_kv + 2 * context * config.hidden_size * element);
  for (const std::vector<uint32_t>& ratios :
       std::vector<std::vector<uint32_t>>{{0}, {500'000}, {900'000}, {500'000, 900'000}}) {
    PrefillOptions options;
    for (int64_t i = 0; i < context; ++i) options.context_ids.push_back(i % 300 + 3);
    options.head_tokens = 10;
    for (const uint32_t ratio : ratios) options.compressions.push_back({.ratio_ppm = ratio});
    if (ratios.size() > 1) {
      for (const Profile profile : {Profile::kKnorm, Profile::kRandom, Profile::kCompactorVllm}) {
        options.compressions.push_back({.ratio_ppm = 950'000, .profile = profile});
      }
    }
    const int64_t before = live_bytes;
    peak_bytes = before;
    Prefill prefill(model, options);
    double longest = 0.0;  // a cancelled ingestion ends behind the unit that runs
    for (bool done = false; !done;) {
      const auto start = std::chrono::steady_clock::now();
      done = prefill.Step();
      longest = std::max(
          longest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    const int64_t above = peak_bytes - before - KeptBytes(prefill.TakeResults());
    std::printf(
        "[ memory   ] %s S = %ld, first ratio %u of %zu: %.1f MB above kept rows, bound %.1f MB; "
        "longest unit %.2f s\n",
        name, static_cast<long>(context), ratios[0], options.compressions.size(),
        static_cast<double>(above) / 1e6, bound / 1e6, longest);
    EXPECT_LE(longest, 1.0);
    EXPECT_LE(static_cast<double>(above), bound);
    EXPECT_GT(above, layer_kv) << "the allocator didn't count";
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, PrefillMemory,
                         ::testing::Combine(::testing::Values("tiny-llama", "tiny-llama-rope3"),
                                            ::testing::Values(at::kFloat, at::kBFloat16)));

}  // namespace
}  // namespace docmem::engine
