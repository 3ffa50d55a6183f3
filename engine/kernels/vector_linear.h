// Matrix products. Only for vector_kernels.cc; see there.
#pragma once

#include <cstdint>

#include "engine/kernels/kernels.h"
#include "engine/kernels/lane_sums.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/vector_rows.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

// Rows and panels of a tile of sums that the registers hold.
constexpr int kTileRows = kWidth == 16 ? 6 : 2;
constexpr int kTilePanels = kWidth == 16 ? 2 : 1;

// 16 outputs' weights of two consecutive inputs.
struct Pair {
  Lanes even, odd;
};
inline Pair LoadPair(const float* panel, int64_t pair) {
  return {LoadLanes(panel + pair * 32), LoadLanes(panel + pair * 32 + 16)};
}
inline Pair LoadPair(const uint16_t* panel, int64_t pair) {
  Pair w;
  for (int i = 0; i < kRegisters; ++i) {
    const Bits both = Load<Bits>(panel + pair * 32 + i * 2 * kWidth);
    w.even.part[i] = AsFloat(both << 16);
    w.odd.part[i] = AsFloat(both & 0xffff0000U);
  }
  return w;
}
inline Pair LoadPair(const int8_t* panel, int64_t pair) {
  Pair w;
  for (int i = 0; i < kRegisters; ++i) {
    const auto both = Load<SignedHalves>(panel + pair * 32 + i * 2 * kWidth);
    w.even.part[i] = __builtin_convertvector(static_cast<SignedHalves>(both << 8) >> 8, Register);
    w.odd.part[i] = __builtin_convertvector(both >> 8, Register);
  }
  return w;
}

template <typename W, int kRows, int kPanels>
inline void Accumulate(const W* panel, int64_t panel_numbers, const float* x, int64_t x_stride,
                       int64_t pairs, Lanes (&sums)[kRows][kPanels]) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    for (int p = 0; p < kPanels; ++p) {
      const Pair w = LoadPair(panel + p * panel_numbers, pair);
      for (int r = 0; r < kRows; ++r) {
        MultiplyAdd(w.even, x[r * x_stride + 2 * pair], &sums[r][p]);
        MultiplyAdd(w.odd, x[r * x_stride + 2 * pair + 1], &sums[r][p]);
      }
    }
  }
}

struct Linear {
  const LinearArgs& args;
  const float* x;  // [T, padded inputs] fp32
  int64_t x_stride;

  template <typename W, typename Y, int kRows, int kPanels>
  void Tile(int64_t row, int64_t panel) const {
    const PackedMatrix& w = *args.weights;
    const int64_t numbers = w.padded_inputs() * kLanes;
    Lanes sums[kRows][kPanels] = {};
    Accumulate<W, kRows, kPanels>(reinterpret_cast<const W*>(w.Panel(panel)), numbers,
                                  x + row * x_stride, x_stride, w.padded_inputs() / 2, sums);
    for (int p = 0; p < kPanels; ++p) {
      const int64_t output = (panel + p) * kLanes;
      const int64_t left = w.outputs() - output;
      const int64_t count = left < kLanes ? left : kLanes;
      for (int r = 0; r < kRows; ++r) {
        Lanes y = sums[r][p];
        if constexpr (sizeof(W) == 1) y = y * LoadLanes(w.scales() + output);
        if (args.bias != nullptr) y = y + LoadUpTo(args.bias + output, count);
        StoreUpTo(y, Row<Y>(args.y, row + r) + output, count);
      }
    }
  }

  template <typename W, typename Y, int kRows, int kPanels>
  void Panels(int64_t row) const {
    int64_t panel = args.first_panel;
    const int64_t end = panel + args.panel_count;
    for (; panel + kPanels <= end; panel += kPanels) Tile<W, Y, kRows, kPanels>(row, panel);
    for (; panel < end; ++panel) Tile<W, Y, kRows, 1>(row, panel);
  }

  template <typename W, typename Y>
  void Run() const {
    int64_t row = 0;
    for (; row + kTileRows <= args.x.rows; row += kTileRows) {
      Panels<W, Y, kTileRows, kTilePanels>(row);
    }
    Rest<W, Y, kTileRows - 1>(row);
  }

  // The last rows, fewer than a tile's.
  template <typename W, typename Y, int kRows>
  void Rest(int64_t row) const {
    if constexpr (kRows > 0) {
      if (args.x.rows - row < kRows) return Rest<W, Y, kRows - 1>(row);
      Panels<W, Y, kRows, kRows == 1 ? 2 * kTilePanels : kTilePanels>(row);
    }
  }
};

// Rows as fp32 with zeros behind their columns.
template <typename T>
inline void WidenRows(const Matrix& x, int64_t stride, float* wide) {
  for (int64_t row = 0; row < x.rows; ++row) {
    const T* from = Row<T>(x, row);
    float* to = wide + row * stride;
    ForLanes(x.columns, [&](int64_t i, int64_t n) { StoreLanes(LoadUpTo(from + i, n), to + i); });
    for (int64_t i = (x.columns + kLanes - 1) / kLanes * kLanes; i < stride; ++i) to[i] = 0.0F;
  }
}

inline void LinearKernel(const LinearArgs& args) {
  const PackedMatrix& w = *args.weights;
  const int64_t stride = w.padded_inputs();
  Scratch scratch(static_cast<size_t>(args.x.rows * stride) * sizeof(float));
  WithType(args.x.type, [&]<typename X>(X*) { WidenRows<X>(args.x, stride, scratch.floats()); });
  const Linear linear = {args, scratch.floats(), stride};
  WithType(args.y.type, [&]<typename Y>(Y*) {
    switch (w.type()) {
      case NumberType::kFloat32:
        return linear.Run<float, Y>();
      case NumberType::kBfloat16:
        return linear.Run<uint16_t, Y>();
      case NumberType::kInt8:
        return linear.Run<int8_t, Y>();
    }
  });
}

}  // namespace
}  // namespace docmem::engine
