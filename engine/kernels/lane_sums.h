// Sums, largest values and exponentials of lanes. Only for vector_kernels.cc; see lanes.h.
#pragma once

#include "engine/kernels/lanes.h"

namespace docmem::engine {
namespace {

// Adds two registers' lanes in halves of blocks of 2·kStep: per block a's sums, then b's.
template <int kStep>
inline Register Halve(Register a, Register b) {
  Indices low, high;
  for (int lane = 0; lane < kWidth; ++lane) {
    const int block = lane / (2 * kStep), inside = lane % (2 * kStep);
    low[lane] = block * 2 * kStep + inside % kStep + (inside < kStep ? 0 : kWidth);
    high[lane] = low[lane] + kStep;
  }
#ifdef __clang__
  Register result;
  for (int lane = 0; lane < kWidth; ++lane) {
    const auto pick = [&](int i) { return i < kWidth ? a[i] : b[i - kWidth]; };
    result[lane] = pick(low[lane]) + pick(high[lane]);
  }
  return result;
#else
  return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
#endif
}

// Lane i: the sum of v[i]'s lanes. v has kWidth registers and is used up.
template <int kStep>
inline Register SumTree(Register* v) {
  if constexpr (kStep == 0) {
    return v[0];
  } else {
    for (int i = 0; i < kStep; ++i) v[i] = Halve<kStep>(v[i], v[i + kStep]);
    return SumTree<kStep / 2>(v);
  }
}
inline Lanes SumEach(const Lanes (&v)[kLanes]) {
  return Each([&](int part) {
    Register sums[kWidth];
    for (int i = 0; i < kWidth; ++i) {
      const Lanes& lanes = v[part * kWidth + i];
      sums[i] = lanes.part[0];
      for (int r = 1; r < kRegisters; ++r) sums[i] += lanes.part[r];
    }
    return SumTree<kWidth / 2>(sums);
  });
}
inline float Sum(const Lanes& v) {
  float total[kLanes];
  StoreLanes(v, total);
  for (int step = 8; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) total[i] += total[i + step];
  }
  return total[0];
}
inline float Largest(const Lanes& v) {
  float largest[kLanes];
  StoreLanes(v, largest);
  for (int step = 8; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) {
      if (largest[i] < largest[i + step]) largest[i] = largest[i + step];
    }
  }
  return largest[0];
}

// e^x within 2 units in the last place: x = n·ln 2 + r with |r| ≤ ln 2 / 2, Taylor's series of e^r
// as far as r⁷/7!, and n added to the exponent. Below −87 it is e^−87, above 88 e^88; NaN stays.
inline Register Exp(Register x) {
  x = Select(x < -87.0F, Register{} - 87.0F, x);
  x = Select(x > 88.0F, Register{} + 88.0F, x);
  const Register shifted = x * 1.44269504088896341F + 12582912.0F;  // 1.5 · 2²³: to an integer
  const Register n = shifted - 12582912.0F;
  const Register r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // ln 2 in two parts
  Register p = Register{} + 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return AsFloat(AsBits(p) + (AsBits(shifted) << 23));
}
inline Lanes Exp(const Lanes& x) {
  return Each([&](int i) { return Exp(x.part[i]); });
}

}  // namespace
}  // namespace docmem::engine
