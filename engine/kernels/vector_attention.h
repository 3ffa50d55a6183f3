// Attention over cached and own rows. Only for vector_kernels.cc; see there.
#pragma once

#include <cstdint>

#include "engine/kernels/kernels.h"
#include "engine/kernels/lane_sums.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/vector_rows.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

constexpr int64_t kTileKeys = 64;
constexpr float kNegativeInfinity = -__builtin_inff();

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

  // Returns how many rows the tile holds.
  int64_t LoadTile(const KvSpan& span, int64_t first) const {
    const int64_t count = span.rows - first < kTileKeys ? span.rows - first : kTileKeys;
    const auto widen = [&]<typename T>(T*) {
      const int64_t at = first * args.dim;
      WidenTile<T, kVectors>(static_cast<const T*>(span.keys) + at, count, args.dim, keys);
      WidenTile<T, kVectors>(static_cast<const T*>(span.values) + at, count, args.dim, values);
    };
    if (span.type == NumberType::kInt8) {
      widen(static_cast<int8_t*>(nullptr));
      Dequantise(span, first, count);
    } else {
      WithType(span.type, widen);
    }
    return count;
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

  // All queries over rows that all of them see.
  void OverShared(const KvSpan& span) const {
    for (int64_t first = 0; first < span.rows; first += kTileKeys) {
      const int64_t count = LoadTile(span, first);
      for (int64_t index = 0; index < queries; ++index) Query(index, count);
    }
  }

  // One sequence's queries, of which the first is `begin`, over its own rows.
  void OverOwn(const OwnRows& own, int64_t begin) const {
    for (int64_t first = 0; first < own.kv.rows; first += kTileKeys) {
      const int64_t count = LoadTile(own.kv, first);
      for (int64_t index = 0; index < own.queries * args.repeat; ++index) {
        const int64_t seen = own.offset + index / args.repeat + 1 - first;
        if (seen > 0) Query(begin + index, seen < count ? seen : count);
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
  attention.OverShared(args.cached);
  for (int64_t i = 0, begin = 0; i < args.sequences; ++i) {
    attention.OverOwn(args.own[i], begin);
    begin += args.own[i].queries * args.repeat;
  }
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

inline void AttendKernel(const AttendArgs& args) {
  const int64_t vectors = (args.dim + kLanes - 1) / kLanes;
  if (vectors <= 1) return AttendWith<1>(args);
  if (vectors <= 2) return AttendWith<2>(args);
  if (vectors <= 4) return AttendWith<4>(args);
  if (vectors <= 6) return AttendWith<6>(args);
  if (vectors <= 8) return AttendWith<8>(args);
  return AttendWith<16>(args);
}

}  // namespace
}  // namespace docmem::engine
