// What the AMX kernels share. Only for amx_*.cc, which are compiled for it.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "engine/kernels/packed_matrix.h"

namespace docmem::engine {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kBlock = PackedMatrix::kBlockInputs;
constexpr int64_t kLanes = PackedMatrix::kPanelOutputs;

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};
};

inline void Load(const TileConfig& config) {
  // GCC 12 believes that the instruction reads 8 bytes only, and drops the stores to the others.
  __asm__ volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

inline __m256i Round(__m512 v) {
  const __m256bh rounded = _mm512_cvtneps_pbh(v);
  __m256i bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return bits;
}

}  // namespace
}  // namespace docmem::engine
