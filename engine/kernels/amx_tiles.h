// What the AMX kernels share. Only for amx_*.cc, which are compiled for it.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "engine/kernels/packed_matrix.h"

namespace docmem::engine {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kBlock = PackedMatrix::kBlockInputs;

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

}  // namespace
}  // namespace docmem::engine
