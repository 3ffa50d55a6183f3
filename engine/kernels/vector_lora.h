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

// x · a for `kCount` components from `component` on, of one row; their sums go to `down`.
template <typename T, int kCount>
inline void LoraDots(const LoraArgs& args, const T* x, int64_t component, float* down) {
  Lanes sums[kLanes] = {};
  ForLanes(args.a.columns, [&](int64_t i, int64_t n) {
    const Lanes numbers = LoadUpTo(x + i, n);
    for (int c = 0; c < kCount; ++c) {
      MultiplyAdd(LoadUpTo(Row<T>(args.a, component + c) + i, n), numbers, &sums[c]);
    }
  });
  float totals[kLanes];
  StoreLanes(SumEach(sums), totals);
  for (int c = 0; c < kCount; ++c) down[component + c] = totals[c];
}

template <typename T>
void LoraDown(const LoraArgs& args, int64_t first, int64_t count) {
  constexpr int kTogether = 8;  // independent sums, and rows of A that are read side by side
  for (int64_t row = 0; row < args.x.rows; ++row) {
    const T* x = Row<T>(args.x, row);
    float* down = args.down + row * args.a.rows;
    int64_t component = first;
    for (; component + kTogether <= first + count; component += kTogether) {
      LoraDots<T, kTogether>(args, x, component, down);
    }
    for (; component < first + count; ++component) LoraDots<T, 1>(args, x, component, down);
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
