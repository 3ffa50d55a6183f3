// Kernels that go row by row. Only for vector_kernels.cc; see there.
#pragma once

#include <cstdint>

#include "engine/kernels/kernels.h"
#include "engine/kernels/lane_sums.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/matrix.h"

namespace docmem::engine {
namespace {

// Calls visit(first, count) for every 16 of `count` numbers, the last ones fewer.
template <typename Visit>
inline void ForLanes(int64_t count, const Visit& visit) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) visit(i, kLanes);
  if (i < count) visit(i, count - i);
}
template <typename Visit>
inline void WithType(NumberType type, const Visit& visit) {
  if (type == NumberType::kFloat32) {
    visit(static_cast<float*>(nullptr));
  } else {
    visit(static_cast<uint16_t*>(nullptr));
  }
}
template <typename T>
inline T* Row(const Matrix& m, int64_t row) {
  return static_cast<T*>(m.data) + row * m.stride;
}

inline void RmsNormKernel(const Matrix& x, const float* weight, float eps, const Matrix& y) {
  WithType(x.type, [&]<typename T>(T*) {
    for (int64_t row = 0; row < x.rows; ++row) {
      const T* from = Row<T>(x, row);
      T* to = Row<T>(y, row);
      Lanes squares = {};
      ForLanes(x.columns, [&](int64_t i, int64_t n) {
        const Lanes v = LoadUpTo(from + i, n);
        MultiplyAdd(v, v, &squares);
      });
      const float mean = Sum(squares) / static_cast<float>(x.columns);
      const float scale = 1.0F / __builtin_sqrtf(mean + eps);
      ForLanes(x.columns, [&](int64_t i, int64_t n) {
        T rounded[kLanes];
        StoreLanes(LoadUpTo(from + i, n) * scale, rounded);
        StoreUpTo(LoadLanes(rounded) * LoadUpTo(weight + i, n), to + i, n);
      });
    }
  });
}

inline void RotateKernel(const Matrix& x, int64_t dim, const float* cosine, const float* sine,
                         const Matrix& y) {
  const int64_t half = dim / 2;
  WithType(x.type, [&]<typename T>(T*) {
    for (int64_t row = 0; row < x.rows; ++row) {
      for (int64_t head = 0; head < x.columns; head += dim) {
        const T* from = Row<T>(x, row) + head;
        T* to = Row<T>(y, row) + head;
        ForLanes(half, [&](int64_t i, int64_t n) {
          const Lanes first = LoadUpTo(from + i, n), second = LoadUpTo(from + half + i, n);
          const Lanes c = LoadUpTo(cosine + row * half + i, n),
                      s = LoadUpTo(sine + row * half + i, n);
          StoreUpTo(first * c - second * s, to + i, n);
          StoreUpTo(second * c + first * s, to + half + i, n);
        });
      }
    }
  });
}

inline Lanes Silu(const Lanes& x) {
  return Each([&](int i) { return x.part[i] / (1.0F + Exp(-x.part[i])); });
}

inline void SiluMultiplyKernel(const Matrix& gate, const Matrix& up, const Matrix& y) {
  WithType(gate.type, [&]<typename T>(T*) {
    for (int64_t row = 0; row < gate.rows; ++row) {
      const T* g = Row<T>(gate, row);
      const T* u = Row<T>(up, row);
      T* to = Row<T>(y, row);
      ForLanes(gate.columns, [&](int64_t i, int64_t n) {
        const Lanes x = LoadUpTo(g + i, n);
        T rounded[kLanes];
        StoreLanes(Silu(x), rounded);
        StoreUpTo(LoadLanes(rounded) * LoadUpTo(u + i, n), to + i, n);
      });
    }
  });
}

inline void AddKernel(const Matrix& x, const Matrix& y) {
  WithType(x.type, [&]<typename T>(T*) {
    for (int64_t row = 0; row < x.rows; ++row) {
      const T* from = Row<T>(x, row);
      T* to = Row<T>(y, row);
      ForLanes(x.columns, [&](int64_t i, int64_t n) {
        StoreUpTo(LoadUpTo(from + i, n) + LoadUpTo(to + i, n), to + i, n);
      });
    }
  });
}

// First the largest number, then the sum of e^(x − largest), four groups of
// lanes at a time, and last the place of the largest.
inline LogSumExp LogSumExpKernel(const float* x, int64_t count) {
  constexpr int64_t kTogether = 4;
  const auto over = [&](const auto& visit) {  // visit(sum's number, first, count)
    int64_t i = 0;
    for (; i + kTogether * kLanes <= count; i += kTogether * kLanes) {
      for (int64_t s = 0; s < kTogether; ++s) visit(s, i + s * kLanes, kLanes);
    }
    for (; i < count; i += kLanes) visit(0, i, count - i < kLanes ? count - i : kLanes);
  };
  const float lowest = -__builtin_inff();
  Lanes tops[kTogether] = {Splat(lowest), Splat(lowest), Splat(lowest), Splat(lowest)};
  over([&](int64_t s, int64_t i, int64_t n) {
    tops[s] = Larger(Below(static_cast<int>(n), LoadUpTo(x + i, n), lowest), tops[s]);
  });
  const float top = Largest(Larger(Larger(tops[0], tops[1]), Larger(tops[2], tops[3])));
  Lanes sums[kTogether] = {};
  over([&](int64_t s, int64_t i, int64_t n) {
    sums[s] = sums[s] + Below(static_cast<int>(n), Exp(LoadUpTo(x + i, n) - Splat(top)), 0.0F);
  });
  int64_t best = 0;
  while (best + 1 < count && x[best] != top) ++best;
  return {top + __builtin_logf(Sum((sums[0] + sums[1]) + (sums[2] + sums[3]))), best};
}

}  // namespace
}  // namespace docmem::engine
