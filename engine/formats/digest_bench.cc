// How fast a stored file can be checked: build/release/bench/digest_bench
#include <benchmark/benchmark.h>

#include "engine/formats/digest.h"

namespace docmem::engine {
namespace {

constexpr size_t kBytes = 64u << 20;

void BM_Xxh3(benchmark::State& state) {
  const std::string bytes(kBytes, 'x');
  for (auto _ : state) benchmark::DoNotOptimize(Xxh3Hex(bytes));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kBytes));
}
BENCHMARK(BM_Xxh3)->Unit(benchmark::kMillisecond);

void BM_Sha256(benchmark::State& state) {
  const std::string bytes(kBytes, 'x');
  for (auto _ : state) benchmark::DoNotOptimize(Sha256Hex(bytes));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kBytes));
}
BENCHMARK(BM_Sha256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace docmem::engine
