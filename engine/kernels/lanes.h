// Sixteen fp32 lanes as the registers of the instruction set that a file is compiled for: one of
// AVX-512, two of AVX2, four of SSE2 or NEON. Only for vector_kernels.cc: the names live in its
// unnamed namespace, once per path. GCC's and Clang's vector extension does the rest.
#pragma once

#include <cstdint>

namespace docmem::engine {
namespace {

constexpr int kLanes = 16;
#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
constexpr int kRegisters = kLanes / kWidth;

using Register = float __attribute__((vector_size(4 * kWidth)));
using Bits = uint32_t __attribute__((vector_size(4 * kWidth)));
using Indices = int32_t __attribute__((vector_size(4 * kWidth)));
using Halves = uint16_t __attribute__((vector_size(2 * kWidth)));
using SignedHalves = int16_t __attribute__((vector_size(2 * kWidth)));
using Bytes = int8_t __attribute__((vector_size(kWidth)));

template <typename V>
inline V Load(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
template <typename V>
inline void Store(const V& v, void* to) {
  __builtin_memcpy(to, &v, sizeof v);
}

inline Register AsFloat(Bits bits) { return reinterpret_cast<Register>(bits); }
inline Bits AsBits(Register value) { return reinterpret_cast<Bits>(value); }
inline Register Select(Indices mask, Register yes, Register no) {
  const Bits m = reinterpret_cast<Bits>(mask);
  return AsFloat((AsBits(yes) & m) | (AsBits(no) & ~m));
}

struct Lanes {
  Register part[kRegisters];
};

template <typename Operation>
inline Lanes Each(const Operation& operation) {
  Lanes result;
  for (int i = 0; i < kRegisters; ++i) result.part[i] = operation(i);
  return result;
}
inline Lanes Splat(float value) {
  return Each([&](int) { return Register{} + value; });
}
inline Lanes operator+(const Lanes& a, const Lanes& b) {
  return Each([&](int i) { return a.part[i] + b.part[i]; });
}
inline Lanes operator-(const Lanes& a, const Lanes& b) {
  return Each([&](int i) { return a.part[i] - b.part[i]; });
}
inline Lanes operator*(const Lanes& a, const Lanes& b) {
  return Each([&](int i) { return a.part[i] * b.part[i]; });
}
inline Lanes operator*(const Lanes& a, float b) {
  return Each([&](int i) { return a.part[i] * b; });
}
// sum + a · b, fused where the path has the instruction.
inline void MultiplyAdd(const Lanes& a, float b, Lanes* sum) {
  for (int i = 0; i < kRegisters; ++i) sum->part[i] += a.part[i] * b;
}
inline void MultiplyAdd(const Lanes& a, const Lanes& b, Lanes* sum) {
  for (int i = 0; i < kRegisters; ++i) sum->part[i] += a.part[i] * b.part[i];
}
inline Lanes Larger(const Lanes& a, const Lanes& b) {
  return Each([&](int i) { return Select(a.part[i] > b.part[i], a.part[i], b.part[i]); });
}
// Lane i as it is where i < limit, else `other`.
inline Lanes Below(int limit, const Lanes& a, float other) {
  return Each([&](int part) {
    Indices index;
    for (int lane = 0; lane < kWidth; ++lane) index[lane] = part * kWidth + lane;
    return Select(index < limit, a.part[part], Register{} + other);
  });
}

// ---- numbers in memory ------------------------------------------------------------------------

inline uint16_t Narrow(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float Widen(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, sizeof value);
  return value;
}

inline Lanes LoadLanes(const float* p) {
  return Each([&](int i) { return Load<Register>(p + i * kWidth); });
}
inline Lanes LoadLanes(const uint16_t* p) {
  return Each([&](int i) {
    return AsFloat(__builtin_convertvector(Load<Halves>(p + i * kWidth), Bits) << 16);
  });
}
inline Lanes LoadLanes(const int8_t* p) {
  return Each(
      [&](int i) { return __builtin_convertvector(Load<Bytes>(p + i * kWidth), Register); });
}
inline void StoreLanes(const Lanes& v, float* p) { Store(v, p); }
inline void StoreLanes(const Lanes& v, uint16_t* p) {
  for (int i = 0; i < kRegisters; ++i) {
    const Bits bits = AsBits(v.part[i]);
    const Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Bits quiet = (bits >> 16) | 0x40;
    const Bits nan = reinterpret_cast<Bits>(v.part[i] != v.part[i]);
    Store(__builtin_convertvector((rounded & ~nan) | (quiet & nan), Halves), p + i * kWidth);
  }
}
inline float LoadOne(const float* p) { return *p; }
inline float LoadOne(const uint16_t* p) { return Widen(*p); }
inline float LoadOne(const int8_t* p) { return static_cast<float>(*p); }
inline void StoreOne(float v, float* p) { *p = v; }
inline void StoreOne(float v, uint16_t* p) { *p = Narrow(v); }

// The first `count` (1 … 16) lanes; the others are 0.
template <typename T>
inline Lanes LoadUpTo(const T* p, int64_t count) {
  if (count == kLanes) return LoadLanes(p);
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = LoadOne(p + i);
  return LoadLanes(lanes);
}
template <typename T>
inline void StoreUpTo(const Lanes& v, T* p, int64_t count) {
  if (count == kLanes) return StoreLanes(v, p);
  float lanes[kLanes];
  StoreLanes(v, lanes);
  for (int64_t i = 0; i < count; ++i) StoreOne(lanes[i], p + i);
}

}  // namespace
}  // namespace docmem::engine
