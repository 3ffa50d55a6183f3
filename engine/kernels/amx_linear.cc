// Matrix products on AMX tiles: 16 rows of x by 32 inputs against 32 inputs by 16 outputs, summed
// in fp32. A row's sums run over the inputs in one order whatever the other rows are, so one kernel
// serves one token and a whole chunk with equal bits.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/kernels/amx_tiles.h"
#include "engine/kernels/bf16_registers.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

constexpr int64_t kTileNumbers = kBlock * kLanes;  // bf16 numbers of a weight tile

// For products: tiles 0–3 sum, 4 and 5 hold rows of x, 6 and 7 weights.
void Configure(int64_t first_rows, int64_t second_rows) {
  TileConfig config;
  const auto set = [&config](int tile, int64_t rows) {
    config.column_bytes[tile] = 64;
    config.rows[tile] = static_cast<uint8_t>(std::max<int64_t>(rows, 1));
  };
  for (const int tile : {0, 1, 4}) set(tile, first_rows);
  for (const int tile : {2, 3, 5}) set(tile, second_rows);
  for (const int tile : {6, 7}) set(tile, kTileRows);
  Load(config);
}

// Where the weight tiles of two neighbouring panels come from, block by block of 32 inputs.
struct Bfloat16Weights {
  const uint16_t* first;
  int64_t panel_numbers;

  const uint16_t* Tile(int64_t block, int64_t panel) {
    return first + panel * panel_numbers + block * kTileNumbers;
  }
};

// Int8 is widened just before its use, a few blocks at a time, so that it never leaves the nearest
// cache.
struct Int8Weights {
  const int8_t* first;
  int64_t panel_numbers;
  alignas(64) uint16_t wide[4][2][kTileNumbers];  // blocks in turn

  const uint16_t* Tile(int64_t block, int64_t panel) {
    uint16_t* tile = wide[block % 4][panel];
    WidenInt8(first + panel * panel_numbers + block * kTileNumbers, kTileNumbers, tile);
    return tile;
  }
};

struct Rows {
  const uint16_t* first;  // of up to 32
  int64_t stride;         // numbers
};

// Sums of up to 16 rows by one panel in tile 0, by two panels in tiles 0 and 1.
template <typename Weights>
void OneByOne(const Rows& x, Weights* weights, int64_t blocks) {
  _tile_zero(0);
  for (int64_t k = 0; k < blocks; ++k) {
    _tile_loadd(4, x.first + k * kBlock, x.stride * 2);
    _tile_loadd(6, weights->Tile(k, 0), 64);
    _tile_dpbf16ps(0, 4, 6);
  }
}

template <typename Weights>
void OneByTwo(const Rows& x, Weights* weights, int64_t blocks) {
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t k = 0; k < blocks; ++k) {
    _tile_loadd(4, x.first + k * kBlock, x.stride * 2);
    _tile_loadd(6, weights->Tile(k, 0), 64);
    _tile_loadd(7, weights->Tile(k, 1), 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
}

// The same of 17 to 32 rows: the second 16 in tiles 2 and 3.
template <typename Weights>
void TwoByTwo(const Rows& x, Weights* weights, int64_t blocks) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const uint16_t* second = x.first + kTileRows * x.stride;
  for (int64_t k = 0; k < blocks; ++k) {
    _tile_loadd(4, x.first + k * kBlock, x.stride * 2);
    _tile_loadd(6, weights->Tile(k, 0), 64);
    _tile_loadd(7, weights->Tile(k, 1), 64);
    _tile_loadd(5, second + k * kBlock, x.stride * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

class LinearRun {
 public:
  // `wide`: room for two panels of bf16, only for int8 weights and more than 32 rows.
  LinearRun(const LinearArgs& args, const Rows& x, uint16_t* wide)
      : args_(args), x_(x), wide_(wide) {
    panel_numbers_ = args.weights->padded_inputs() * kLanes;
    blocks_ = args.weights->padded_inputs() / kBlock;
  }

  void Run() const {
    const int64_t rows = args_.x.rows;
    const int64_t whole = rows / (2 * kTileRows) * (2 * kTileRows);
    if (whole > 0) {
      Configure(kTileRows, kTileRows);
      ForPanels(whole > 2 * kTileRows, [&](auto* weights, int64_t panel, int64_t panels) {
        for (int64_t row = 0; row < whole; row += 2 * kTileRows) {
          Block(weights, panel, panels, row, 2 * kTileRows);
        }
      });
    }
    if (whole < rows) {
      const int64_t left = rows - whole;
      Configure(std::min(left, kTileRows), left - kTileRows);
      ForPanels(false, [&](auto* weights, int64_t panel, int64_t panels) {
        Block(weights, panel, panels, whole, left);
      });
    }
    _tile_release();
  }

 private:
  // Calls visit(weights, first panel, 1 or 2) for all panels. Int8 panels that are read more than
  // once are widened as a whole before.
  template <typename Visit>
  void ForPanels(bool again, const Visit& visit) const {
    const PackedMatrix& w = *args_.weights;
    const int64_t end = args_.first_panel + args_.panel_count;
    for (int64_t panel = args_.first_panel; panel < end; panel += 2) {
      const int64_t panels = std::min<int64_t>(2, end - panel);
      const std::byte* data = w.Panel(panel);
      const auto* int8 = reinterpret_cast<const int8_t*>(data);
      if (w.type() == NumberType::kInt8 && !again) {
        Int8Weights weights;
        weights.first = int8;
        weights.panel_numbers = panel_numbers_;
        visit(&weights, panel, panels);
        continue;
      }
      if (w.type() == NumberType::kInt8) WidenInt8(int8, panels * panel_numbers_, wide_);
      const bool widened = w.type() == NumberType::kInt8;
      Bfloat16Weights weights = {widened ? wide_ : reinterpret_cast<const uint16_t*>(data),
                                 panel_numbers_};
      visit(&weights, panel, panels);
    }
  }

  template <typename Weights>
  void Block(Weights* weights, int64_t panel, int64_t panels, int64_t row, int64_t rows) const {
    const int64_t first = std::min(rows, kTileRows), second = rows - first;
    const Rows x = {x_.first + row * x_.stride, x_.stride};
    if (panels == 1) return SinglePanel(weights, panel, row, first, second);
    alignas(64) float sums[4][kTileRows * kLanes];
    if (second > 0) {
      TwoByTwo(x, weights, blocks_);
      _tile_stored(2, sums[2], 64);
      _tile_stored(3, sums[3], 64);
    } else {
      OneByTwo(x, weights, blocks_);
    }
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[1], 64);
    for (int64_t p = 0; p < 2; ++p) {
      Write(sums[p], row, first, panel + p);
      if (second > 0) Write(sums[2 + p], row + kTileRows, second, panel + p);
    }
  }

  // By 16 rows. Tile 0 has as many as the first ones, so the second ones need a configuration of
  // their own when they are fewer.
  template <typename Weights>
  void SinglePanel(Weights* weights, int64_t panel, int64_t row, int64_t first,
                   int64_t second) const {
    alignas(64) float sums[kTileRows * kLanes];
    OneByOne({x_.first + row * x_.stride, x_.stride}, weights, blocks_);
    _tile_stored(0, sums, 64);
    Write(sums, row, first, panel);
    if (second <= 0) return;
    if (second < kTileRows) Configure(second, 1);
    OneByOne({x_.first + (row + kTileRows) * x_.stride, x_.stride}, weights, blocks_);
    _tile_stored(0, sums, 64);
    Write(sums, row + kTileRows, second, panel);
    if (second < kTileRows) Configure(first, second);
  }

  void Write(const float* sums, int64_t row, int64_t rows, int64_t panel) const {
    const Finish finish(args_, panel);
    for (int64_t i = 0; i < rows; ++i) finish.Row(_mm512_loadu_ps(sums + i * kLanes), row + i);
  }

  const LinearArgs& args_;
  Rows x_;
  uint16_t* wide_;
  int64_t panel_numbers_ = 0;
  int64_t blocks_ = 0;
};

}  // namespace

void AmxLinear(const LinearArgs& args) {
  const PackedMatrix& w = *args.weights;
  if (w.type() == NumberType::kFloat32 || args.x.type != NumberType::kBfloat16) {
    return vector_tables::kAvx512.linear(args);
  }
  const bool ragged = w.inputs() != w.padded_inputs();
  const bool widened = w.type() == NumberType::kInt8 && args.x.rows > 2 * kTileRows;
  const auto copied = static_cast<size_t>(ragged ? args.x.rows * w.padded_inputs() : 0);
  const auto wide = static_cast<size_t>(widened ? 2 * w.padded_inputs() * kLanes : 0);
  const Scratch scratch((copied + wide) * sizeof(uint16_t));
  auto* memory = reinterpret_cast<uint16_t*>(scratch.floats());
  Rows x = {static_cast<const uint16_t*>(args.x.data), args.x.stride};
  if (ragged) {
    std::memset(memory + wide, 0, copied * sizeof(uint16_t));
    for (int64_t row = 0; row < args.x.rows; ++row) {
      std::memcpy(memory + wide + static_cast<size_t>(row * w.padded_inputs()),
                  x.first + row * x.stride, static_cast<size_t>(w.inputs()) * sizeof(uint16_t));
    }
    x = {memory + wide, w.padded_inputs()};
  }
  LinearRun(args, x, memory).Run();
}

}  // namespace docmem::engine
