// Peak memory of a prefill against the bound of its header, counted by an allocator of our own.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
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

class PrefillMemory : public ::testing::Test {
 protected:
  PrefillMemory() { c10::SetCPUAllocator(&counting_, /*priority=*/200); }
  ~PrefillMemory() override {
    c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), /*priority=*/200);
  }

 private:
  static CountingAllocator counting_;
};

CountingAllocator PrefillMemory::counting_;

class TinyPrefillMemory
    : public PrefillMemory,
      public ::testing::WithParamInterface<std::tuple<const char*, at::ScalarType>> {};

// What a prefill of one context took.
struct Measured {
  double above_bytes = 0.0;  // peak above weights and kept rows
  double bound_bytes = 0.0;
  double longest_unit_seconds = 0.0;  // a cancelled ingestion ends behind the unit that runs
};

Measured Measure(const Transformer& model, int64_t context,
                 const std::vector<Compression>& compressions) {
  const ModelConfig& config = model.config();
  const auto element = static_cast<int64_t>(c10::elementSize(model.dtype()));
  const int64_t layer_kv = 2 * context * config.kv_heads * config.head_dim * element;
  Measured measured = {
      .bound_bytes =
          2.5 * static_cast<double>(layer_kv + 2 * context * config.hidden_size * element)};
  PrefillOptions options = {.head_tokens = 10, .compressions = compressions};
  for (int64_t i = 0; i < context; ++i) options.context_ids.push_back(i % 300 + 3);
  const int64_t before = live_bytes;
  peak_bytes = before;
  Prefill prefill(model, options);
  for (bool done = false; !done;) {
    const auto start = std::chrono::steady_clock::now();
    done = prefill.Step();
    const std::chrono::duration<double> unit = std::chrono::steady_clock::now() - start;
    measured.longest_unit_seconds = std::max(measured.longest_unit_seconds, unit.count());
  }
  const int64_t above = peak_bytes - before - KeptBytes(prefill.TakeResults());
  EXPECT_GT(above, layer_kv) << "the allocator didn't count";
  measured.above_bytes = static_cast<double>(above);
  std::printf(
      "[ memory   ] S = %ld, ratio %.1f and %zu more: %.1f MB above kept rows, bound %.1f MB; "
      "longest unit %.2f s\n",
      static_cast<long>(context), compressions[0].ratio_ppm / 1e6, compressions.size() - 1,
      measured.above_bytes / 1e6, measured.bound_bytes / 1e6, measured.longest_unit_seconds);
  return measured;
}

TEST_P(TinyPrefillMemory, StaysWithinTheBoundAboveWeightsAndKeptRows) {
  const auto& [name, dtype] = GetParam();
  const Transformer model =
      testing::LoadModel(testing::Reference(std::string("models/") + name), dtype);
  std::vector<Compression> many = {{.ratio_ppm = 500'000}, {.ratio_ppm = 900'000}};
  for (const Profile profile : {Profile::kKnorm, Profile::kRandom, Profile::kCompactorVllm}) {
    many.push_back({.ratio_ppm = 950'000, .profile = profile});
  }
  for (const std::vector<Compression>& compressions :
       std::vector<std::vector<Compression>>{{{.ratio_ppm = 0}}, {{.ratio_ppm = 900'000}}, many}) {
    const Measured measured = Measure(model, 12'000, compressions);
    EXPECT_LE(measured.above_bytes, measured.bound_bytes);
  }
}

TEST_F(PrefillMemory, AHundredThousandTokensStayWithinItAndCanBeCancelledWithinASecond) {
  if (std::getenv("DOCMEM_LONG") == nullptr) GTEST_SKIP() << "a minute: ./dev test --long";
  at::set_num_threads(2);
  const Transformer model =
      testing::LoadModel(testing::Reference("models/tiny-llama"), at::kBFloat16);
  for (const uint32_t ratio_ppm : {0U, 500'000U, 900'000U}) {
    const Measured measured = Measure(model, 100'000, {{.ratio_ppm = ratio_ppm}});
    EXPECT_LE(measured.above_bytes, measured.bound_bytes);
    EXPECT_LE(measured.longest_unit_seconds, 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, TinyPrefillMemory,
                         ::testing::Combine(::testing::Values("tiny-llama", "tiny-llama-rope3"),
                                            ::testing::Values(at::kFloat, at::kBFloat16)));

}  // namespace
}  // namespace docmem::engine
