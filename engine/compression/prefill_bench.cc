// Ingestion speed: build/release/bench/prefill_bench [--benchmark_filter=SmolLM2]
// SmolLM2 runs only where DOCMEM_SMOLLM2 names its folder. Arguments: context tokens, ratio_ppm.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <optional>
#include <vector>

#include "engine/compression/prefill.h"
#include "engine/compression/testing.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

void Run(benchmark::State& state, const Transformer& model) {
  PrefillOptions options;
  for (int64_t i = 0; i < state.range(0); ++i) options.context_ids.push_back(i * 7919 % 300 + 3);
  options.head_tokens = 20;
  options.compressions = {{.ratio_ppm = static_cast<uint32_t>(state.range(1))}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(testing::RunPrefill(model, options));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void TinyLlama(benchmark::State& state) {
  Run(state, testing::LoadModel(testing::Reference("models/tiny-llama")));
}

void SmolLM2(benchmark::State& state) {
  const auto folder = testing::SmolLm2();
  if (!folder) {
    state.SkipWithError("DOCMEM_SMOLLM2 names no model folder");
    return;
  }
  Run(state, testing::LoadModel(*folder, at::kBFloat16));
}

BENCHMARK(TinyLlama)->Args({400, 0})->Args({400, 900'000})->Args({2000, 900'000})->UseRealTime();
BENCHMARK(SmolLM2)
    ->Args({400, 0})
    ->Args({400, 900'000})
    ->Args({2000, 0})
    ->Args({2000, 900'000})
    ->Args({7800, 900'000})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace docmem::engine
