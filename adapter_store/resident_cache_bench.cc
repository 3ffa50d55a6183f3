// Run: ninja -C build/release resident_cache_bench && build/release/bench/resident_cache_bench
// One iteration is one request: lease, use, let go. The executor runs tasks at once, loaders cost
// nothing, so what is measured is the bookkeeping.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapter_store/resident_cache.h"
#include "benchmark/benchmark.h"

namespace docmem::store {
namespace {

using Cache = ResidentCache<int>;

std::unique_ptr<Cache> MakeCache(uint64_t budget) {
  Cache::Options options;
  options.budget_bytes = budget;
  options.executor = [](absl::AnyInvocable<void()> task) { task(); };
  return std::make_unique<Cache>(std::move(options));
}

void Request(Cache& cache, int64_t id) {
  std::vector<ResidentItem<int>> items(1);
  items[0].key.id = std::to_string(id);
  items[0].bytes = 1;
  items[0].loader = [] { return std::make_unique<const int>(1); };
  cache.Acquire(std::move(items), WhenFull::kFail,
                [](absl::StatusOr<Cache::Leases> leases) { benchmark::DoNotOptimize(leases); });
}

void Hit(benchmark::State& state) {
  static const std::unique_ptr<Cache> kCache = MakeCache(1 << 20);
  if (state.thread_index() == 0) {
    for (int64_t id = 0; id < 1024; ++id) Request(*kCache, id);
  }
  int64_t id = state.thread_index();
  for (auto _ : state) Request(*kCache, id++ % 1024);
}
BENCHMARK(Hit)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();

// Every request unloads one of `range` items.
void MissInAFullCache(benchmark::State& state) {
  const std::unique_ptr<Cache> cache = MakeCache(static_cast<uint64_t>(state.range(0)));
  int64_t id = 0;
  while (id < state.range(0)) Request(*cache, id++);
  for (auto _ : state) Request(*cache, id++);
}
BENCHMARK(MissInAFullCache)->Arg(100)->Arg(10000)->Arg(100000);

}  // namespace
}  // namespace docmem::store
