// Both halves of an adapter on AMX tiles.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/kernels/amx_tiles.h"
#include "engine/kernels/bf16_registers.h"
#include "engine/kernels/bfloat16.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

// Products of a matrix's rows, which become tiles' rows as they lie in memory, with up to 16
// vectors, in blocks of at most 32 columns of equal width. Tiles 0–2 sum [row, vector], 3–5 hold
// rows of the matrix, 6 the vectors. One at a time per thread: the tiles' shapes are the thread's.
class RowProducts {
 public:
  static constexpr int64_t kTiles = 3;  // at once, so that memory has more than one to bring

  // `rows` (1 … 16) of `matrix` per tile. With an odd number of columns a load reaches one number
  // behind the last of its rows.
  RowProducts(const Matrix& matrix, int64_t rows, int64_t vectors)
      : matrix_(matrix), rows_(rows), vectors_(vectors) {
    const int64_t pairs = (matrix.columns + 1) / 2;
    block_pairs_ = std::min(pairs, kBlock / 2);
    while (pairs % block_pairs_ != 0) --block_pairs_;
    blocks_ = pairs / block_pairs_;
    TileConfig config;
    const auto set = [&config](int tile, int64_t tile_rows, int64_t bytes) {
      config.rows[tile] = static_cast<uint8_t>(tile_rows);
      config.column_bytes[tile] = static_cast<uint16_t>(bytes);
    };
    for (const int tile : {0, 1, 2}) set(tile, rows, vectors * 4);
    for (const int tile : {3, 4, 5}) set(tile, rows, block_pairs_ * 4);
    set(6, block_pairs_, vectors * 4);
    Load(config);
  }
  ~RowProducts() { _tile_release(); }
  RowProducts(const RowProducts&) = delete;
  RowProducts& operator=(const RowProducts&) = delete;

  // pairs [columns / 2, vectors, 2] → sums [rows, vectors] for the rows from `row` on.
  void One(int64_t row, const uint16_t* pairs, float* sums) const {
    _tile_zero(0);
    for (int64_t k = 0; k < blocks_; ++k) {
      _tile_loadd(3, From(row, k), matrix_.stride * 2);
      _tile_loadd(6, pairs + k * block_pairs_ * 2 * vectors_, vectors_ * 4);
      _tile_dpbf16ps(0, 3, 6);
    }
    _tile_stored(0, sums, vectors_ * 4);
  }

  // The same of three times as many rows.
  void Three(int64_t row, const uint16_t* pairs, float* sums) const {
    const int64_t stride = matrix_.stride * 2, next = rows_ * matrix_.stride;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    for (int64_t k = 0; k < blocks_; ++k) {
      const uint16_t* from = From(row, k);
      _tile_loadd(3, from, stride);
      _tile_loadd(4, from + next, stride);
      _tile_loadd(5, from + 2 * next, stride);
      _tile_loadd(6, pairs + k * block_pairs_ * 2 * vectors_, vectors_ * 4);
      _tile_dpbf16ps(0, 3, 6);
      _tile_dpbf16ps(1, 4, 6);
      _tile_dpbf16ps(2, 5, 6);
    }
    const int64_t numbers = rows_ * vectors_;
    _tile_stored(0, sums, vectors_ * 4);
    _tile_stored(1, sums + numbers, vectors_ * 4);
    _tile_stored(2, sums + 2 * numbers, vectors_ * 4);
  }

 private:
  const uint16_t* From(int64_t row, int64_t block) const {
    return static_cast<const uint16_t*>(matrix_.data) + row * matrix_.stride +
           block * block_pairs_ * 2;
  }

  const Matrix& matrix_;
  int64_t rows_;
  int64_t vectors_;
  int64_t block_pairs_ = 0;
  int64_t blocks_ = 0;
};

size_t PairsBytes(int64_t columns) {
  return static_cast<size_t>((columns + 1) / 2 * kTileRows) * 2 * sizeof(uint16_t);
}

// Components first … first + count − 1 of up to 16 rows of x from `row` on. x has an even width.
void DownRows(const LoraArgs& args, int64_t first, int64_t count, int64_t row, int64_t rows) {
  const int64_t inputs = args.x.columns;
  const auto* x = static_cast<const uint16_t*>(args.x.data) + row * args.x.stride;
  const Scratch scratch(PairsBytes(inputs));
  const uint16_t* pairs = x;  // of one row: as it is
  if (rows > 1) {
    auto* packed = reinterpret_cast<uint32_t*>(scratch.floats());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t pair = 0; pair < inputs / 2; ++pair) {
        std::memcpy(packed + pair * rows + i, x + i * args.x.stride + pair * 2, sizeof(uint32_t));
      }
    }
    pairs = reinterpret_cast<const uint16_t*>(packed);
  }
  float* down = args.down + row * args.a.rows;
  for (int64_t component = first; component < first + count; component += kTileRows) {
    const int64_t components = std::min(kTileRows, first + count - component);
    alignas(64) float sums[kTileRows * kTileRows];
    RowProducts(args.a, components, rows).One(component, pairs, sums);
    for (int64_t c = 0; c < components; ++c) {
      for (int64_t i = 0; i < rows; ++i) {
        down[i * args.a.rows + component + c] = sums[c * rows + i];
      }
    }
  }
}

// y += scale · the sums of one row, which lie `stride` apart, at 16 outputs.
void AddTo(const LoraArgs& args, int64_t output, int64_t row, const float* sums, int64_t stride) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i at = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(static_cast<int>(stride)));
  const __m512 change = stride == 1 ? _mm512_loadu_ps(sums) : _mm512_i32gather_ps(at, sums, 4);
  auto* y = static_cast<uint16_t*>(args.y.data) + row * args.y.stride + output;
  __m256i bits;
  std::memcpy(&bits, y, sizeof bits);
  const __m512 old = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  bits = Round(_mm512_fmadd_ps(change, _mm512_set1_ps(args.scale), old));
  std::memcpy(y, &bits, sizeof bits);
}

// Outputs first … first + 16 · groups − 1 of up to 16 rows from `row` on.
void UpRows(const LoraArgs& args, int64_t first, int64_t groups, int64_t row, int64_t rows) {
  const int64_t rank = args.b.columns;
  const Scratch scratch(PairsBytes(rank));
  auto* pairs = reinterpret_cast<uint16_t*>(scratch.floats());
  for (int64_t i = 0; i < rows; ++i) {
    const float* down = args.down + (row + i) * rank;
    for (int64_t r = 0; r < (rank + 1) / 2 * 2; ++r) {
      pairs[(r / 2 * rows + i) * 2 + r % 2] = ToBfloat16(r < rank ? down[r] : 0.0F);
    }
  }
  const RowProducts products(args.b, kTileRows, rows);
  alignas(64) float sums[RowProducts::kTiles * kTileRows * kTileRows];
  for (int64_t group = 0; group < groups;) {
    const int64_t output = first + group * kLanes;
    const int64_t together = groups - group < RowProducts::kTiles ? 1 : RowProducts::kTiles;
    if (together == 1) {
      products.One(output, pairs, sums);
    } else {
      products.Three(output, pairs, sums);
    }
    for (int64_t g = 0; g < together; ++g) {
      const float* from = sums + g * kTileRows * rows;
      for (int64_t i = 0; i < rows; ++i) {
        AddTo(args, output + g * kLanes, row + i, from + i, rows);
      }
    }
    group += together;
  }
}

}  // namespace

void AmxLoraDown(const LoraArgs& args, int64_t first, int64_t count) {
  if (args.x.type != NumberType::kBfloat16 || args.x.columns % 2 != 0) {
    return vector_tables::kAvx512.lora_down(args, first, count);
  }
  for (int64_t row = 0; row < args.x.rows; row += kTileRows) {
    DownRows(args, first, count, row, std::min(kTileRows, args.x.rows - row));
  }
}

void AmxLoraUp(const LoraArgs& args, int64_t first, int64_t count) {
  // The last outputs of B are left to the kernel that loads with care.
  const int64_t safe = (args.b.rows - 1 - first) / kLanes;
  const int64_t groups = std::min(count / kLanes, std::max<int64_t>(safe, 0));
  if (args.y.type == NumberType::kBfloat16 && groups > 0) {
    for (int64_t row = 0; row < args.y.rows; row += kTileRows) {
      UpRows(args, first, groups, row, std::min(kTileRows, args.y.rows - row));
    }
    first += groups * kLanes;
    count -= groups * kLanes;
  }
  if (count > 0) vector_tables::kAvx512.lora_up(args, first, count);
}

}  // namespace docmem::engine
