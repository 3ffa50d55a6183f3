// The two halves of an adapter. Only for vector_kernels.cc; see there.
#pragma once

#include <cstdint>

#include "engine/kernels/kernels.h"
#include "engine/kernels/lane_sums.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/vector_rows.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

// x · a for one component, as the sums of each lane. Row after row of A is read from one end to the
// other: read side by side, rows share pages, and the memory's prefetcher follows one run per page.
template <typename T>
inline Lanes LoraDot(const LoraArgs& args, const T* x, int64_t component) {
  constexpr int64_t kTogether = 4;  // independent sums
  const T* a = Row<T>(args.a, component);
  const int64_t columns = args.a.columns;
  Lanes sums[kTogether] = {};
  int64_t i = 0;
  for (; i + kTogether * kLanes <= columns; i += kTogether * kLanes) {
    for (int64_t s = 0; s < kTogether; ++s) {
      MultiplyAdd(LoadLanes(a + i + s * kLanes), LoadLanes(x + i + s * kLanes), &sums[s]);
    }
  }
  for (; i < columns; i += kLanes) {
    const int64_t n = columns - i < kLanes ? columns - i : kLanes;
    MultiplyAdd(LoadUpTo(a + i, n), LoadUpTo(x + i, n), &sums[0]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <typename T>
void LoraDown(const LoraArgs& args, int64_t first, int64_t count) {
  for (int64_t row = 0; row < args.x.rows; ++row) {
    const T* x = Row<T>(args.x, row);
    float* down = args.down + row * args.a.rows + first;
    ForLanes(count, [&](int64_t component, int64_t n) {
      Lanes sums[kLanes] = {};
      for (int64_t c = 0; c < n; ++c) sums[c] = LoraDot(args, x, first + component + c);
      StoreUpTo(SumEach(sums), down + component, n);
    });
  }
}

// 16 outputs of one row. Loads of 16 numbers reach behind a row of B into the next ones, where
// `down` is 0; with kCareful nothing behind B's last number is loaded, and only `count` outputs
// exist.
template <typename T, bool kCareful>
inline void LoraOutputs(const LoraArgs& args, const float* down, T* y, int64_t first,
                        int64_t count) {
  const int64_t rank = args.b.columns, numbers = args.b.rows * rank;
  const T* b = static_cast<const T*>(args.b.data) + first * rank;
  Lanes sums[kLanes] = {};
  for (int64_t v = 0; v < rank; v += kLanes) {
    const Lanes weights = LoadLanes(down + v);
    for (int o = 0; o < kLanes; ++o) {
      if constexpr (kCareful) {
        const int64_t left = numbers - (first + o) * rank - v;
        if (left <= 0) continue;
        MultiplyAdd(LoadUpTo(b + o * rank + v, left < kLanes ? left : kLanes), weights, &sums[o]);
      } else {
        MultiplyAdd(LoadLanes(b + o * rank + v), weights, &sums[o]);
      }
    }
  }
  T* to = y + first;
  StoreUpTo(LoadUpTo(to, count) + SumEach(sums) * args.scale, to, count);
}

template <typename T>
void LoraUp(const LoraArgs& args, int64_t first, int64_t count) {
  const int64_t rank = args.b.columns, padded = (rank + kLanes - 1) / kLanes * kLanes;
  Scratch scratch(static_cast<size_t>(padded) * sizeof(float));
  float* down = scratch.floats();
  for (int64_t r = rank; r < padded; ++r) down[r] = 0.0F;
  for (int64_t row = 0; row < args.y.rows; ++row) {
    for (int64_t r = 0; r < rank; ++r) down[r] = args.down[row * rank + r];
    T* y = Row<T>(args.y, row);
    ForLanes(count, [&](int64_t i, int64_t n) {
      const int64_t last = (first + i + kLanes - 1) * rank + padded;
      if (n == kLanes && last <= args.b.rows * rank) {
        LoraOutputs<T, false>(args, down, y, first + i, n);
      } else {
        LoraOutputs<T, true>(args, down, y, first + i, n);
      }
    });
  }
}

inline void LoraDownKernel(const LoraArgs& args, int64_t first, int64_t count) {
  WithType(args.x.type, [&]<typename T>(T*) { LoraDown<T>(args, first, count); });
}
inline void LoraUpKernel(const LoraArgs& args, int64_t first, int64_t count) {
  WithType(args.y.type, [&]<typename T>(T*) { LoraUp<T>(args, first, count); });
}

}  // namespace
}  // namespace docmem::engine
