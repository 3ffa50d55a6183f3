#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace docmem::engine {

/// One of the threads that run a piece of work together.
struct Worker {
  int index = 0;
  int count = 1;

  /// This worker's part of `total` things, in whole multiples of `unit` but for the last one: equal
  /// parts in order. {first, count}.
  std::pair<int64_t, int64_t> Share(int64_t total, int64_t unit = 1) const {
    const int64_t units = (total + unit - 1) / unit;
    const auto begin = [&](int64_t worker) {
      return std::min(total, units * worker / count * unit);
    };
    return {begin(index), begin(index + 1) - begin(index)};
  }

  /// Returns when all workers of the piece of work have come here, in whose memory is then seen
  /// what each has written. Every worker calls it equally often.
  static void Barrier();
};

/// Runs `work(Worker)` on every thread of the tensor library's pool at once and returns when all
/// have. Calls don't nest; `work` doesn't throw.
template <typename Work>
void OnAllWorkers(const Work& work);

namespace internal {
void RunOnAllWorkers(void (*call)(const void*, const Worker&), const void* work);
}  // namespace internal

template <typename Work>
void OnAllWorkers(const Work& work) {
  internal::RunOnAllWorkers(
      [](const void* erased, const Worker& worker) { (*static_cast<const Work*>(erased))(worker); },
      &work);
}

}  // namespace docmem::engine
