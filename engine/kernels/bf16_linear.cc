// Matrix products by AVX-512's bf16 instruction: it multiplies two inputs of a row with two of each
// of 16 outputs and adds both to their fp32 sums. A row's sums run over the inputs in one order
// whatever the other rows are, so one kernel serves one token and a whole chunk with equal bits.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/kernels/bf16_registers.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

// A tile's sums, one panel's weights each and a row's inputs fill the 32 registers.
constexpr int kTileRows = 8;
constexpr int kTilePanels = 3;
// Rows whose inputs stay in the second cache while all panels pass.
constexpr int64_t kBlockRows = 128;

struct Bfloat16Weights {
  const uint16_t* first;
  int64_t panel_numbers;

  __m512bh Pair(int64_t pair, int64_t panel) const {
    __m512bh both;
    std::memcpy(&both, first + panel * panel_numbers + pair * 2 * kLanes, sizeof both);
    return both;
  }
};

struct Int8Weights {
  const int8_t* first;
  int64_t panel_numbers;

  __m512bh Pair(int64_t pair, int64_t panel) const {
    return WidenInt8(first + panel * panel_numbers + pair * 2 * kLanes);
  }
};

// One number or two (2 or 4 bytes), in every lane.
template <int ByteCount>
inline __m512bh Splat(const uint16_t* from) {
  uint32_t bits = 0;
  std::memcpy(&bits, from, ByteCount);
  const __m512i lanes = _mm512_set1_epi32(static_cast<int>(bits));
  __m512bh both;
  std::memcpy(&both, &lanes, sizeof both);
  return both;
}

template <int ByteCount, typename Weights, int RowCount, int PanelCount>
inline void AddPair(const uint16_t* x, int64_t stride, const Weights& weights, int64_t pair,
                    __m512 (&sums)[RowCount][PanelCount]) {
  __m512bh w[PanelCount];
  for (int p = 0; p < PanelCount; ++p) w[p] = weights.Pair(pair, p);
  for (int r = 0; r < RowCount; ++r) {
    const __m512bh both = Splat<ByteCount>(x + r * stride + pair * 2);
    for (int p = 0; p < PanelCount; ++p) sums[r][p] = _mm512_dpbf16_ps(sums[r][p], both, w[p]);
  }
}

class LinearRun {
 public:
  // `wide`: room for a tile's panels in bf16, only for int8 weights and more rows than a tile's.
  LinearRun(const LinearArgs& args, uint16_t* wide)
      : args_(args), wide_(wide), panel_numbers_(args.weights->padded_inputs() * kLanes) {}

  void Run() const {
    for (int64_t row = 0; row < args_.x.rows; row += kBlockRows) {
      const int64_t end = std::min(row + kBlockRows, args_.x.rows);
      int64_t panel = args_.first_panel, left = args_.panel_count;
      for (; left >= kTilePanels; left -= kTilePanels, panel += kTilePanels) {
        Panels<kTilePanels>(panel, row, end);
      }
      for (; left > 0; --left, ++panel) Panels<1>(panel, row, end);
    }
  }

 private:
  template <int PanelCount>
  void Panels(int64_t panel, int64_t row, int64_t end) const {
    const std::byte* data = args_.weights->Panel(panel);
    if (args_.weights->type() == NumberType::kBfloat16) {
      const auto* bfloat16 = reinterpret_cast<const uint16_t*>(data);
      return Rows<PanelCount>(Bfloat16Weights{bfloat16, panel_numbers_}, panel, row, end);
    }
    const auto* int8 = reinterpret_cast<const int8_t*>(data);
    if (end - row <= kTileRows) {
      return Rows<PanelCount>(Int8Weights{int8, panel_numbers_}, panel, row, end);
    }
    WidenInt8(int8, PanelCount * panel_numbers_, wide_);
    Rows<PanelCount>(Bfloat16Weights{wide_, panel_numbers_}, panel, row, end);
  }

  template <int PanelCount, typename Weights>
  void Rows(const Weights& weights, int64_t panel, int64_t row, int64_t end) const {
    for (; row + kTileRows <= end; row += kTileRows) {
      Tile<kTileRows, PanelCount>(weights, panel, row);
    }
    Rest<kTileRows - 1, PanelCount>(weights, panel, row, end - row);
  }

  // The last rows, fewer than a tile's.
  template <int RowCount, int PanelCount, typename Weights>
  void Rest(const Weights& weights, int64_t panel, int64_t row, int64_t left) const {
    if constexpr (RowCount > 0) {
      if (left < RowCount) return Rest<RowCount - 1, PanelCount>(weights, panel, row, left);
      Tile<RowCount, PanelCount>(weights, panel, row);
    }
  }

  template <int RowCount, int PanelCount, typename Weights>
  void Tile(const Weights& weights, int64_t panel, int64_t row) const {
    const auto* x = static_cast<const uint16_t*>(args_.x.data) + row * args_.x.stride;
    const int64_t inputs = args_.weights->inputs(), stride = args_.x.stride;
    __m512 sums[RowCount][PanelCount];
    for (auto& of_row : sums) std::fill(of_row, of_row + PanelCount, _mm512_setzero_ps());
    for (int64_t pair = 0; pair < inputs / 2; ++pair) AddPair<4>(x, stride, weights, pair, sums);
    if (inputs % 2 != 0) AddPair<2>(x, stride, weights, inputs / 2, sums);
    for (int p = 0; p < PanelCount; ++p) {
      const Finish finish(args_, panel + p);
      for (int r = 0; r < RowCount; ++r) finish.Row(sums[r][p], row + r);
    }
  }

  const LinearArgs& args_;
  uint16_t* wide_;
  int64_t panel_numbers_;
};

}  // namespace

void Bf16Linear(const LinearArgs& args) {
  const PackedMatrix& w = *args.weights;
  if (w.type() == NumberType::kFloat32 || args.x.type != NumberType::kBfloat16) {
    return vector_tables::kAvx512.linear(args);
  }
  const bool widened = w.type() == NumberType::kInt8 && args.x.rows > kTileRows;
  const int64_t numbers = widened ? kTilePanels * w.padded_inputs() * kLanes : 0;
  const Scratch scratch(static_cast<size_t>(numbers) * sizeof(uint16_t));
  LinearRun(args, reinterpret_cast<uint16_t*>(scratch.floats())).Run();
}

}  // namespace docmem::engine
