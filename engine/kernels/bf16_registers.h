// What the kernels for CPUs with native bf16 products share. Only for amx_*.cc and bf16_*.cc,
// which are compiled for AVX-512 with bf16.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/kernels/kernels.h"
#include "engine/kernels/packed_matrix.h"

namespace docmem::engine {
namespace {

constexpr int64_t kLanes = PackedMatrix::kPanelOutputs;

inline __m256i Round(__m512 v) {
  const __m256bh rounded = _mm512_cvtneps_pbh(v);
  __m256i bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return bits;
}

// 32 int8 weights as bf16, which holds them exactly, in the same order.
inline __m512bh WidenInt8(const int8_t* from) {
  const auto half = [from](int64_t at) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at))));
  };
  return _mm512_cvtne2ps_pbh(half(16), half(0));
}

inline void WidenInt8(const int8_t* from, int64_t numbers, uint16_t* wide) {
  for (int64_t i = 0; i < numbers; i += 32) {
    const __m512bh both = WidenInt8(from + i);
    std::memcpy(wide + i, &both, sizeof both);
  }
}

// Writes one panel's sums to y: scaled, biased, rounded.
class Finish {
 public:
  Finish(const LinearArgs& args, int64_t panel) : args_(args), output_(panel * kLanes) {
    const PackedMatrix& w = *args.weights;
    const int64_t count = std::min(kLanes, w.outputs() - output_);
    mask_ = static_cast<__mmask16>((1U << count) - 1);
    const bool scaled = w.type() == NumberType::kInt8;
    scale_ = scaled ? _mm512_loadu_ps(w.scales() + output_) : _mm512_set1_ps(1.0F);
    bias_ = args.bias == nullptr ? _mm512_setzero_ps()
                                 : _mm512_maskz_loadu_ps(mask_, args.bias + output_);
  }

  void Row(__m512 sums, int64_t row) const {
    const __m512 y = _mm512_fmadd_ps(sums, scale_, bias_);
    const int64_t at = row * args_.y.stride + output_;
    if (args_.y.type == NumberType::kFloat32) {
      _mm512_mask_storeu_ps(static_cast<float*>(args_.y.data) + at, mask_, y);
    } else {
      _mm256_mask_storeu_epi16(static_cast<uint16_t*>(args_.y.data) + at, mask_, Round(y));
    }
  }

 private:
  const LinearArgs& args_;
  int64_t output_;
  __mmask16 mask_;
  __m512 scale_;
  __m512 bias_;
};

}  // namespace
}  // namespace docmem::engine
