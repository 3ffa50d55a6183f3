// Compiled once per instruction set, each time with DOCMEM_VECTOR_TABLE naming the table to define.
// Nothing here may call a shared inline function that isn't inlined: the linker would keep one
// path's copy for all.
#include <cstdint>

#include "engine/kernels/kernels.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

constexpr int64_t kTileKeys = 64;
constexpr float kNegativeInfinity = -__builtin_inff();
// Rows and panels of a tile of sums that the registers hold.
constexpr int kTileRows = kWidth == 16 ? 6 : 2;
constexpr int kTilePanels = kWidth == 16 ? 2 : 1;

// Calls visit(first, count) for every 16 of `count` numbers, the last ones fewer.
template <typename Visit>
inline void ForLanes(int64_t count, const Visit& visit) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) visit(i, kLanes);
  if (i < count) visit(i, count - i);
}
template <typename Visit>
inline void WithType(NumberType type, const Visit& visit) {
  if (type == NumberType::kFloat32) {
    visit(static_cast<float*>(nullptr));
  } else {
    visit(static_cast<uint16_t*>(nullptr));
  }
}
template <typename T>
inline T* Row(const Matrix& m, int64_t row) {
  return static_cast<T*>(m.data) + row * m.stride;
}

// ---- linear -------------------------------------------------------------------------------------

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

void LinearKernel(const LinearArgs& args) {
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

// ---- adapters -----------------------------------------------------------------------------------

// x · a for `kCount` components from `component` on, of one row; their sums go to `down`.
template <typename T, int kCount>
inline void LoraDots(const LoraArgs& args, const T* x, int64_t component, float* down) {
  Lanes sums[kLanes] = {};
  ForLanes(args.a.columns, [&](int64_t i, int64_t n) {
    const Lanes numbers = LoadUpTo(x + i, n);
    for (int c = 0; c < kCount; ++c) {
      MultiplyAdd(LoadUpTo(Row<T>(args.a, component + c) + i, n), numbers, &sums[c]);
    }
  });
  float totals[kLanes];
  StoreLanes(SumEach(sums), totals);
  for (int c = 0; c < kCount; ++c) down[component + c] = totals[c];
}

template <typename T>
void LoraDown(const LoraArgs& args, int64_t first, int64_t count) {
  constexpr int kTogether = 8;  // independent sums, and rows of A that are read side by side
  for (int64_t row = 0; row < args.x.rows; ++row) {
    const T* x = Row<T>(args.x, row);
    float* down = args.down + row * args.a.rows;
    int64_t component = first;
    for (; component + kTogether <= first + count; component += kTogether) {
      LoraDots<T, kTogether>(args, x, component, down);
    }
    for (; component < first + count; ++component) LoraDots<T, 1>(args, x, component, down);
  }
}

// Up to 16 outputs of one row. Loads of 16 numbers reach behind a row of B into the next ones,
// where `down` is 0; the last rows, behind which there is nothing, are loaded with care.
template <typename T>
inline void LoraOutputs(const LoraArgs& args, const float* down, T* y, int64_t first,
                        int64_t count) {
  const int64_t rank = args.b.columns, vectors = (rank + kLanes - 1) / kLanes;
  const int64_t numbers = args.b.rows * rank;
  const T* b = static_cast<const T*>(args.b.data);
  Lanes sums[kLanes] = {};
  for (int64_t v = 0; v < vectors; ++v) {
    const Lanes weights = LoadLanes(down + v * kLanes);
    for (int64_t o = 0; o < count; ++o) {
      const int64_t at = (first + o) * rank + v * kLanes;
      const int64_t left = numbers - at;
      MultiplyAdd(LoadUpTo(b + at, left < kLanes ? left : kLanes), weights, &sums[o]);
    }
  }
  T* to = y + first;
  StoreUpTo(LoadUpTo(to, count) + SumEach(sums) * args.scale, to, count);
}

template <typename T>
void LoraUp(const LoraArgs& args, int64_t first, int64_t count) {
  const int64_t rank = args.b.columns, padded = (rank + kLanes - 1) / kLanes * kLanes;
  Scratch scratch(static_cast<size_t>(padded) * sizeof(float));
  float* down = scratch.floats();
  for (int64_t r = rank; r < padded; ++r) down[r] = 0.0F;
  for (int64_t row = 0; row < args.y.rows; ++row) {
    for (int64_t r = 0; r < rank; ++r) down[r] = args.down[row * rank + r];
    ForLanes(count, [&](int64_t i, int64_t n) {
      LoraOutputs<T>(args, down, Row<T>(args.y, row), first + i, n);
    });
  }
}

void LoraDownKernel(const LoraArgs& args, int64_t first, int64_t count) {
  WithType(args.x.type, [&]<typename T>(T*) { LoraDown<T>(args, first, count); });
}
void LoraUpKernel(const LoraArgs& args, int64_t first, int64_t count) {
  WithType(args.y.type, [&]<typename T>(T*) { LoraUp<T>(args, first, count); });
}

// ---- attention ----------------------------------------------------------------------------------

// Up to 64 keys (or values) of one head as fp32, rows of kVectors · 16 numbers.
template <typename T, int kVectors>
inline void WidenTile(const T* from, int64_t rows, int64_t dim, float* tile) {
  for (int64_t row = 0; row < rows; ++row) {
    ForLanes(dim, [&](int64_t i, int64_t n) {
      StoreLanes(LoadUpTo(from + row * dim + i, n), tile + row * kVectors * kLanes + i);
    });
  }
  // The last group's missing rows are multiplied too, by weights of 0, but 0 · NaN isn't 0.
  const int64_t groups = (rows + kLanes - 1) / kLanes;
  for (int64_t i = rows * kVectors; i < groups * kLanes * kVectors; ++i) {
    StoreLanes(Lanes{}, tile + i * kLanes);
  }
}

template <int kVectors>
struct Attention {
  static constexpr int64_t kRow = kVectors * kLanes;

  const AttendArgs& args;
  int64_t queries;  // T · repeat
  float* q;         // [queries, kRow], scaled
  float* out;       // [queries, kRow]
  float* top;       // [queries]
  float* total;     // [queries]
  float* keys;      // [64, kRow]
  float* values;    // [64, kRow]

  void LoadTile(const KvSpan& span, int64_t first, int64_t count) const {
    const int64_t dim = args.dim;
    switch (span.type) {
      case NumberType::kFloat32:
        WidenTile<float, kVectors>(static_cast<const float*>(span.keys) + first * dim, count, dim,
                                   keys);
        WidenTile<float, kVectors>(static_cast<const float*>(span.values) + first * dim, count, dim,
                                   values);
        return;
      case NumberType::kBfloat16:
        WidenTile<uint16_t, kVectors>(static_cast<const uint16_t*>(span.keys) + first * dim, count,
                                      dim, keys);
        WidenTile<uint16_t, kVectors>(static_cast<const uint16_t*>(span.values) + first * dim,
                                      count, dim, values);
        return;
      case NumberType::kInt8:
        WidenTile<int8_t, kVectors>(static_cast<const int8_t*>(span.keys) + first * dim, count, dim,
                                    keys);
        WidenTile<int8_t, kVectors>(static_cast<const int8_t*>(span.values) + first * dim, count,
                                    dim, values);
        return Dequantise(span, first, count);
    }
  }

  void Dequantise(const KvSpan& span, int64_t first, int64_t count) const {
    for (int64_t row = 0; row < count; ++row) {
      const float value_scale = span.value_scales[first + row];
      ForLanes(args.dim, [&](int64_t i, int64_t n) {
        float* key = keys + row * kRow + i;
        float* value = values + row * kRow + i;
        StoreLanes(LoadLanes(key) * LoadUpTo(span.key_scales + i, n), key);
        StoreLanes(LoadLanes(value) * value_scale, value);
      });
    }
  }

  // Scores of 16 keys from `first` of the tile on; those from `limit` on are −∞.
  Lanes Scores(const Lanes (&query)[kVectors], int64_t first, int64_t limit) const {
    Lanes sums[kLanes];
    for (int key = 0; key < kLanes; ++key) {
      const float* row = keys + (first + key) * kRow;
      Lanes sum = query[0] * LoadLanes(row);
      for (int v = 1; v < kVectors; ++v) MultiplyAdd(query[v], LoadLanes(row + v * kLanes), &sum);
      sums[key] = sum;
    }
    return Below(static_cast<int>(limit - first), SumEach(sums), kNegativeInfinity);
  }

  // One query over the first `limit` keys of the tile.
  void Query(int64_t index, int64_t limit) const {
    Lanes query[kVectors];
    for (int v = 0; v < kVectors; ++v) query[v] = LoadLanes(q + index * kRow + v * kLanes);
    Lanes scores[kTileKeys / kLanes];
    const int64_t groups = (limit + kLanes - 1) / kLanes;
    Lanes best = Splat(top[index]);
    for (int64_t i = 0; i < groups; ++i) {
      scores[i] = Scores(query, i * kLanes, limit);
      best = Larger(scores[i], best);
    }
    const float new_top = Largest(best);
    const float decay = total[index] == 0.0F ? 0.0F : Exp(Register{} + (top[index] - new_top))[0];
    Lanes weights_sum = {};
    float weights[kTileKeys];
    for (int64_t i = 0; i < groups; ++i) {
      const Lanes weight =
          Below(static_cast<int>(limit - i * kLanes), Exp(scores[i] - Splat(new_top)), 0.0F);
      weights_sum = weights_sum + weight;
      StoreLanes(weight, weights + i * kLanes);
    }
    top[index] = new_top;
    total[index] = total[index] * decay + Sum(weights_sum);
    AddValues(index, decay, weights, groups * kLanes);
  }

  void AddValues(int64_t index, float decay, const float* weights, int64_t count) const {
    Lanes even[kVectors], odd[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      even[v] = LoadLanes(out + index * kRow + v * kLanes) * decay;
      odd[v] = Lanes{};
    }
    for (int64_t key = 0; key < count; key += 2) {
      const float* row = values + key * kRow;
      for (int v = 0; v < kVectors; ++v) {
        MultiplyAdd(LoadLanes(row + v * kLanes), weights[key], &even[v]);
        MultiplyAdd(LoadLanes(row + kRow + v * kLanes), weights[key + 1], &odd[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v)
      StoreLanes(even[v] + odd[v], out + index * kRow + v * kLanes);
  }

  void Over(const KvSpan& span, bool causal) const {
    for (int64_t first = 0; first < span.rows; first += kTileKeys) {
      const int64_t count = span.rows - first < kTileKeys ? span.rows - first : kTileKeys;
      LoadTile(span, first, count);
      for (int64_t index = 0; index < queries; ++index) {
        const int64_t seen = args.own_offset + index / args.repeat + 1 - first;
        const int64_t limit = causal && seen < count ? seen : count;
        if (limit > 0) Query(index, limit);
      }
    }
  }
};

template <typename T, int kVectors>
void Attend(const AttendArgs& args) {
  constexpr int64_t kRow = kVectors * kLanes;
  const int64_t queries = args.q.rows * args.repeat;
  Scratch scratch(static_cast<size_t>((2 * queries + 2 * kTileKeys) * kRow + 2 * queries) *
                  sizeof(float));
  float* q = scratch.floats();
  float* out = q + queries * kRow;
  float* keys = out + queries * kRow;
  float* values = keys + kTileKeys * kRow;
  float* top = values + kTileKeys * kRow;
  const Attention<kVectors> attention = {args, queries, q, out, top, top + queries, keys, values};
  const bool padded = args.dim < kRow;  // columns that no tile writes
  for (int64_t i = 0; padded && i < kTileKeys * kRow * 2; i += kLanes) {
    StoreLanes(Lanes{}, keys + i);
  }
  for (int64_t index = 0; index < queries; ++index) {
    const T* from = Row<T>(args.q, index / args.repeat) + index % args.repeat * args.dim;
    for (int v = 0; v < kVectors; ++v) {
      StoreLanes(Lanes{}, q + index * kRow + v * kLanes);
      StoreLanes(Lanes{}, out + index * kRow + v * kLanes);
    }
    ForLanes(args.dim, [&](int64_t i, int64_t n) {
      StoreLanes(LoadUpTo(from + i, n) * args.scale, q + index * kRow + i);
    });
    attention.top[index] = kNegativeInfinity;
    attention.total[index] = 0.0F;
  }
  attention.Over(args.cached, /*causal=*/false);
  attention.Over(args.own, /*causal=*/true);
  for (int64_t index = 0; index < queries; ++index) {
    T* to = Row<T>(args.out, index / args.repeat) + index % args.repeat * args.dim;
    const float share = 1.0F / attention.total[index];
    ForLanes(args.dim, [&](int64_t i, int64_t n) {
      StoreUpTo(LoadLanes(out + index * kRow + i) * share, to + i, n);
    });
  }
}

template <int kVectors>
void AttendWith(const AttendArgs& args) {
  WithType(args.q.type, [&]<typename T>(T*) { Attend<T, kVectors>(args); });
}

void AttendKernel(const AttendArgs& args) {
  const int64_t vectors = (args.dim + kLanes - 1) / kLanes;
  if (vectors <= 1) return AttendWith<1>(args);
  if (vectors <= 2) return AttendWith<2>(args);
  if (vectors <= 4) return AttendWith<4>(args);
  if (vectors <= 6) return AttendWith<6>(args);
  if (vectors <= 8) return AttendWith<8>(args);
  return AttendWith<16>(args);
}

// ---- row by row ---------------------------------------------------------------------------------

void RmsNormKernel(const Matrix& x, const float* weight, float eps, const Matrix& y) {
  WithType(x.type, [&]<typename T>(T*) {
    for (int64_t row = 0; row < x.rows; ++row) {
      const T* from = Row<T>(x, row);
      T* to = Row<T>(y, row);
      Lanes squares = {};
      ForLanes(x.columns, [&](int64_t i, int64_t n) {
        const Lanes v = LoadUpTo(from + i, n);
        MultiplyAdd(v, v, &squares);
      });
      const float mean = Sum(squares) / static_cast<float>(x.columns);
      const float scale = 1.0F / __builtin_sqrtf(mean + eps);
      ForLanes(x.columns, [&](int64_t i, int64_t n) {
        T rounded[kLanes];
        StoreLanes(LoadUpTo(from + i, n) * scale, rounded);
        StoreUpTo(LoadLanes(rounded) * LoadUpTo(weight + i, n), to + i, n);
      });
    }
  });
}

void RotateKernel(const Matrix& x, int64_t dim, const float* cosine, const float* sine,
                  const Matrix& y) {
  const int64_t half = dim / 2;
  WithType(x.type, [&]<typename T>(T*) {
    for (int64_t row = 0; row < x.rows; ++row) {
      for (int64_t head = 0; head < x.columns; head += dim) {
        const T* from = Row<T>(x, row) + head;
        T* to = Row<T>(y, row) + head;
        ForLanes(half, [&](int64_t i, int64_t n) {
          const Lanes first = LoadUpTo(from + i, n), second = LoadUpTo(from + half + i, n);
          const Lanes c = LoadUpTo(cosine + row * half + i, n),
                      s = LoadUpTo(sine + row * half + i, n);
          StoreUpTo(first * c - second * s, to + i, n);
          StoreUpTo(second * c + first * s, to + half + i, n);
        });
      }
    }
  });
}

inline Lanes Silu(const Lanes& x) {
  return Each([&](int i) { return x.part[i] / (1.0F + Exp(-x.part[i])); });
}

void SiluMultiplyKernel(const Matrix& gate, const Matrix& up, const Matrix& y) {
  WithType(gate.type, [&]<typename T>(T*) {
    for (int64_t row = 0; row < gate.rows; ++row) {
      const T* g = Row<T>(gate, row);
      const T* u = Row<T>(up, row);
      T* to = Row<T>(y, row);
      ForLanes(gate.columns, [&](int64_t i, int64_t n) {
        const Lanes x = LoadUpTo(g + i, n);
        T rounded[kLanes];
        StoreLanes(Silu(x), rounded);
        StoreUpTo(LoadLanes(rounded) * LoadUpTo(u + i, n), to + i, n);
      });
    }
  });
}

void AddKernel(const Matrix& x, const Matrix& y) {
  WithType(x.type, [&]<typename T>(T*) {
    for (int64_t row = 0; row < x.rows; ++row) {
      const T* from = Row<T>(x, row);
      T* to = Row<T>(y, row);
      ForLanes(x.columns, [&](int64_t i, int64_t n) {
        StoreUpTo(LoadUpTo(from + i, n) + LoadUpTo(to + i, n), to + i, n);
      });
    }
  });
}

}  // namespace

const KernelTable vector_tables::DOCMEM_VECTOR_TABLE = {
    .path = DOCMEM_VECTOR_PATH,
    .linear = LinearKernel,
    .lora_down = LoraDownKernel,
    .lora_up = LoraUpKernel,
    .attend = AttendKernel,
    .rms_norm = RmsNormKernel,
    .rotate = RotateKernel,
    .silu_multiply = SiluMultiplyKernel,
    .add = AddKernel,
};

}  // namespace docmem::engine
