// The second half of an adapter on AMX tiles.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/kernels/amx_tiles.h"
#include "engine/kernels/bfloat16.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

// The second half of an adapter with outputs as a tile's rows: 16 rows of B, as they lie in memory,
// against the components of up to 16 rows of x. Tile 0 sums [output, row]; 4 and 6 are a whole
// block of 32 components, 5 and 7 the last one, which may be shorter.
class LoraUp {
 public:
  LoraUp(const LoraArgs& args, uint16_t* pairs)
      : args_(args), rank_(args.b.columns), blocks_(rank_ / kBlock), pairs_(pairs) {}

  static size_t PairsBytes(int64_t rank) {
    return static_cast<size_t>((rank + 1) / 2 * kTileRows) * 2 * sizeof(uint16_t);
  }

  // Outputs first … first + 16·groups − 1 of all rows. Loads reach one number behind the last row
  // of B when the rank is odd.
  void Run(int64_t first, int64_t groups) const {
    for (int64_t row = 0; row < args_.y.rows; row += kTileRows) {
      const int64_t rows = std::min(kTileRows, args_.y.rows - row);
      PackPairs(row, rows);
      ConfigureFor(rows);
      for (int64_t group = 0; group < groups; ++group) Group(first + group * kLanes, row, rows);
    }
    _tile_release();
  }

 private:
  // Components as bf16, by pairs: [pair, row, 2].
  void PackPairs(int64_t row, int64_t rows) const {
    for (int64_t i = 0; i < rows; ++i) {
      const float* down = args_.down + (row + i) * rank_;
      for (int64_t r = 0; r < (rank_ + 1) / 2 * 2; ++r) {
        const float value = r < rank_ ? down[r] : 0.0F;
        pairs_[(r / 2 * rows + i) * 2 + r % 2] = ToBfloat16(value);
      }
    }
  }

  void ConfigureFor(int64_t rows) const {
    TileConfig config;
    const auto set = [&config](int tile, int64_t tile_rows, int64_t bytes) {
      config.rows[tile] = static_cast<uint8_t>(tile_rows);
      config.column_bytes[tile] = static_cast<uint16_t>(bytes);
    };
    const int64_t last_pairs = (rank_ - blocks_ * kBlock + 1) / 2;
    set(0, kTileRows, rows * 4);
    set(4, kTileRows, 64);
    set(6, kTileRows, rows * 4);
    if (last_pairs > 0) {
      set(5, kTileRows, last_pairs * 4);
      set(7, last_pairs, rows * 4);
    }
    Load(config);
  }

  void Group(int64_t output, int64_t row, int64_t rows) const {
    const auto* b = static_cast<const uint16_t*>(args_.b.data) + output * rank_;
    _tile_zero(0);
    for (int64_t k = 0; k < blocks_; ++k) {
      _tile_loadd(4, b + k * kBlock, rank_ * 2);
      _tile_loadd(6, pairs_ + k * kBlock * rows, rows * 4);
      _tile_dpbf16ps(0, 4, 6);
    }
    if (rank_ > blocks_ * kBlock) {
      _tile_loadd(5, b + blocks_ * kBlock, rank_ * 2);
      _tile_loadd(7, pairs_ + blocks_ * kBlock * rows, rows * 4);
      _tile_dpbf16ps(0, 5, 7);
    }
    alignas(64) float sums[kLanes * kTileRows];
    _tile_stored(0, sums, rows * 4);
    for (int64_t i = 0; i < rows; ++i) AddTo(output, row + i, sums + i, rows);
  }

  // y += scale · the sums of one row, which lie `stride` apart.
  void AddTo(int64_t output, int64_t row, const float* sums, int64_t stride) const {
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i at = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(static_cast<int>(stride)));
    const __m512 change = stride == 1 ? _mm512_loadu_ps(sums) : _mm512_i32gather_ps(at, sums, 4);
    auto* y = static_cast<uint16_t*>(args_.y.data) + row * args_.y.stride + output;
    __m256i bits;
    std::memcpy(&bits, y, sizeof bits);
    const __m512 old = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
    bits = Round(_mm512_fmadd_ps(change, _mm512_set1_ps(args_.scale), old));
    std::memcpy(y, &bits, sizeof bits);
  }

  const LoraArgs& args_;
  int64_t rank_;
  int64_t blocks_;
  uint16_t* pairs_;
};

}  // namespace

void AmxLoraUp(const LoraArgs& args, int64_t first, int64_t count) {
  // The last outputs of B are left to the kernel that loads with care.
  const int64_t safe = (args.b.rows - 1 - first) / kLanes;
  const int64_t groups = std::min(count / kLanes, std::max<int64_t>(safe, 0));
  if (args.y.type == NumberType::kBfloat16 && groups > 0) {
    const Scratch scratch(LoraUp::PairsBytes(args.b.columns));
    LoraUp(args, reinterpret_cast<uint16_t*>(scratch.floats())).Run(first, groups);
    first += groups * kLanes;
    count -= groups * kLanes;
  }
  if (count > 0) vector_tables::kAvx512.lora_up(args, first, count);
}

}  // namespace docmem::engine
