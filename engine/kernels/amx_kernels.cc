// Matrix products on AMX tiles: 16 rows of x by 32 inputs against 32 inputs by 16 outputs, summed
// in fp32. A row's sums run over the inputs in one order whatever the other rows are, so one kernel
// serves one token and a whole chunk with equal bits.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/kernels/kernels.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kBlock = PackedMatrix::kBlockInputs;
constexpr int64_t kLanes = PackedMatrix::kPanelOutputs;
constexpr int64_t kTileNumbers = kBlock * kLanes;  // bf16 numbers of a weight tile

// Tiles 0–3 sum, 4 and 5 hold rows of x, 6 and 7 weights.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};
};

void Configure(int64_t first_rows, int64_t second_rows) {
  TileConfig config;
  const auto set = [&config](int tile, int64_t rows) {
    config.column_bytes[tile] = 64;
    config.rows[tile] = static_cast<uint8_t>(std::max<int64_t>(rows, 1));
  };
  for (const int tile : {0, 1, 4}) set(tile, first_rows);
  for (const int tile : {2, 3, 5}) set(tile, second_rows);
  for (const int tile : {6, 7}) set(tile, kTileRows);
  // GCC 12 believes that the instruction reads 8 bytes only, and drops the stores to the others.
  __asm__ volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

struct Tiles {
  const uint16_t* x;        // first of up to 32 rows
  int64_t x_stride;         // numbers
  const uint16_t* weights;  // a panel; the next one lies panel_numbers behind it
  int64_t panel_numbers;
  int64_t blocks;  // of 32 inputs
};

void OneByTwo(const Tiles& t) {
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t k = 0; k < t.blocks; ++k) {
    _tile_loadd(4, t.x + k * kBlock, t.x_stride * 2);
    _tile_loadd(6, t.weights + k * kTileNumbers, 64);
    _tile_loadd(7, t.weights + t.panel_numbers + k * kTileNumbers, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
}

void TwoByTwo(const Tiles& t) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const uint16_t* second = t.x + kTileRows * t.x_stride;
  for (int64_t k = 0; k < t.blocks; ++k) {
    _tile_loadd(4, t.x + k * kBlock, t.x_stride * 2);
    _tile_loadd(6, t.weights + k * kTileNumbers, 64);
    _tile_loadd(7, t.weights + t.panel_numbers + k * kTileNumbers, 64);
    _tile_loadd(5, second + k * kBlock, t.x_stride * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

void OneByOne(const Tiles& t) {
  _tile_zero(0);
  for (int64_t k = 0; k < t.blocks; ++k) {
    _tile_loadd(4, t.x + k * kBlock, t.x_stride * 2);
    _tile_loadd(6, t.weights + k * kTileNumbers, 64);
    _tile_dpbf16ps(0, 4, 6);
  }
}

// Writes rows of sums to y: scaled, biased, rounded.
class Finish {
 public:
  Finish(const LinearArgs& args) : args_(args) {}

  void Tile(const float* sums, int64_t row, int64_t rows, int64_t panel) const {
    const PackedMatrix& w = *args_.weights;
    const int64_t output = panel * kLanes;
    const int64_t count = std::min(kLanes, w.outputs() - output);
    const auto mask = static_cast<__mmask16>((1U << count) - 1);
    const bool scaled = w.type() == NumberType::kInt8;
    const __m512 scale = scaled ? _mm512_loadu_ps(w.scales() + output) : _mm512_set1_ps(1.0F);
    const __m512 bias = args_.bias == nullptr ? _mm512_setzero_ps()
                                              : _mm512_maskz_loadu_ps(mask, args_.bias + output);
    for (int64_t i = 0; i < rows; ++i) {
      const __m512 sum = _mm512_loadu_ps(sums + i * kLanes);
      const __m512 y = _mm512_fmadd_ps(sum, scale, bias);
      if (args_.y.type == NumberType::kFloat32) {
        float* to = static_cast<float*>(args_.y.data) + (row + i) * args_.y.stride + output;
        _mm512_mask_storeu_ps(to, mask, y);
      } else {
        auto* to = static_cast<uint16_t*>(args_.y.data) + (row + i) * args_.y.stride + output;
        _mm256_mask_storeu_epi16(to, mask, Round(y));
      }
    }
  }

 private:
  static __m256i Round(__m512 v) {
    const __m256bh rounded = _mm512_cvtneps_pbh(v);
    __m256i bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    return bits;
  }

  const LinearArgs& args_;
};

// int8 weights of a panel as bf16, which holds them exactly, in the same order.
void WidenPanel(const std::byte* panel, int64_t numbers, uint16_t* wide) {
  const auto* from = reinterpret_cast<const int8_t*>(panel);
  for (int64_t i = 0; i < numbers; i += 32) {
    const auto quarter = [&](int64_t at) {
      return _mm512_cvtepi32_ps(
          _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + at))));
    };
    const __m512bh both = _mm512_cvtne2ps_pbh(quarter(16), quarter(0));
    std::memcpy(wide + i, &both, sizeof both);
  }
}

class LinearRun {
 public:
  LinearRun(const LinearArgs& args, const uint16_t* x, int64_t x_stride, uint16_t* wide)
      : args_(args), finish_(args), x_(x), x_stride_(x_stride), wide_(wide) {
    const PackedMatrix& w = *args.weights;
    panel_numbers_ = w.padded_inputs() * kLanes;
    blocks_ = w.padded_inputs() / kBlock;
  }

  void Run() const {
    const int64_t rows = args_.x.rows;
    const int64_t whole = rows / (2 * kTileRows) * (2 * kTileRows);
    const int64_t end = args_.first_panel + args_.panel_count;
    if (whole > 0) {
      Configure(kTileRows, kTileRows);
      ForPanels(end, [&](const uint16_t* weights, int64_t panel, int64_t panels) {
        for (int64_t row = 0; row < whole; row += 2 * kTileRows) {
          Block(weights, panel, panels, row, 2 * kTileRows);
        }
      });
    }
    if (whole < rows) {
      const int64_t left = rows - whole;
      Configure(std::min(left, kTileRows), left - kTileRows);
      ForPanels(end, [&](const uint16_t* weights, int64_t panel, int64_t panels) {
        Block(weights, panel, panels, whole, left);
      });
    }
    _tile_release();
  }

 private:
  // Calls visit(bf16 weights, first panel, 1 or 2) for all panels.
  template <typename Visit>
  void ForPanels(int64_t end, const Visit& visit) const {
    const PackedMatrix& w = *args_.weights;
    for (int64_t panel = args_.first_panel; panel < end; panel += 2) {
      const int64_t panels = std::min<int64_t>(2, end - panel);
      if (w.type() == NumberType::kBfloat16) {
        visit(reinterpret_cast<const uint16_t*>(w.Panel(panel)), panel, panels);
      } else {
        WidenPanel(w.Panel(panel), panels * panel_numbers_, wide_);
        visit(wide_, panel, panels);
      }
    }
  }

  void Block(const uint16_t* weights, int64_t panel, int64_t panels, int64_t row,
             int64_t rows) const {
    alignas(64) float sums[4][kTileRows * kLanes];
    const int64_t first = std::min(rows, kTileRows), second = rows - first;
    const Tiles tiles = {x_ + row * x_stride_, x_stride_, weights, panel_numbers_, blocks_};
    if (panels == 2 && second > 0) {
      TwoByTwo(tiles);
      _tile_stored(1, sums[1], 64);
      _tile_stored(2, sums[2], 64);
      _tile_stored(3, sums[3], 64);
    } else if (panels == 2) {
      OneByTwo(tiles);
      _tile_stored(1, sums[1], 64);
    } else {
      return Narrow(tiles, panel, row, first, second);
    }
    _tile_stored(0, sums[0], 64);
    for (int64_t p = 0; p < 2; ++p) {
      finish_.Tile(sums[p], row, first, panel + p);
      if (second > 0) finish_.Tile(sums[2 + p], row + kTileRows, second, panel + p);
    }
  }

  // A last single panel: by 16 rows. Tile 0 has as many as the first ones, so the second ones need
  // a configuration of their own when they are fewer.
  void Narrow(const Tiles& tiles, int64_t panel, int64_t row, int64_t first, int64_t second) const {
    alignas(64) float sums[kTileRows * kLanes];
    OneByOne(tiles);
    _tile_stored(0, sums, 64);
    finish_.Tile(sums, row, first, panel);
    if (second <= 0) return;
    Tiles next = tiles;
    next.x += kTileRows * tiles.x_stride;
    if (second < kTileRows) Configure(second, 1);
    OneByOne(next);
    _tile_stored(0, sums, 64);
    finish_.Tile(sums, row + kTileRows, second, panel);
    if (second < kTileRows) Configure(first, second);
  }

  const LinearArgs& args_;
  Finish finish_;
  const uint16_t* x_;
  int64_t x_stride_;
  uint16_t* wide_;
  int64_t panel_numbers_ = 0;
  int64_t blocks_ = 0;
};

void AmxLinear(const LinearArgs& args) {
  const PackedMatrix& w = *args.weights;
  if (w.type() == NumberType::kFloat32 || args.x.type != NumberType::kBfloat16) {
    return vector_tables::kAvx512.linear(args);
  }
  const bool ragged = w.inputs() != w.padded_inputs();
  const bool widened = w.type() == NumberType::kInt8;
  const int64_t panel_numbers = w.padded_inputs() * kLanes;
  const auto copied = static_cast<size_t>(ragged ? args.x.rows * w.padded_inputs() : 0);
  const auto wide_numbers = static_cast<size_t>(widened ? 2 * panel_numbers : 0);
  const Scratch scratch((copied + wide_numbers + kBlock) * sizeof(uint16_t));
  auto* wide = reinterpret_cast<uint16_t*>(scratch.floats());
  const auto* x = static_cast<const uint16_t*>(args.x.data);
  int64_t stride = args.x.stride;
  if (ragged) {
    uint16_t* copy = wide + wide_numbers;
    std::memset(copy, 0, copied * sizeof(uint16_t));
    for (int64_t row = 0; row < args.x.rows; ++row) {
      std::memcpy(copy + row * w.padded_inputs(), x + row * stride,
                  static_cast<size_t>(w.inputs()) * sizeof(uint16_t));
    }
    x = copy;
    stride = w.padded_inputs();
  }
  LinearRun(args, x, stride, wide).Run();
}

}  // namespace

const KernelTable& AmxTable() {
  static const KernelTable table = [] {
    KernelTable result = vector_tables::kAvx512;
    result.path = CpuPath::kAmx;
    result.linear = AmxLinear;
    return result;
  }();
  return table;
}

}  // namespace docmem::engine
