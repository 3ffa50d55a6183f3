// Causal attention of many rows by AVX-512's bf16 instruction, for prefill. Keys pass in tiles of
// 64, put in order once for all queries: in a tile the queries are taken six at a time, whose
// scores, and then whose sums of values, the registers hold.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "engine/kernels/bf16_registers.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {
namespace {

constexpr int64_t kTileQueries = 6;
constexpr int64_t kTileKeys = 64;
constexpr int kVectors = 4;                          // of a tile's scores, or of a span of values
constexpr int64_t kSpanNumbers = kVectors * kLanes;  // of a head's dimensions

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Sums of products of six rows of pairs `x` with `pairs` rows of 64 lanes of pairs, on top of
// `sums`.
inline void AddProducts(const uint32_t* x, int64_t x_stride, const uint32_t* lanes,
                        int64_t lanes_stride, int64_t pairs,
                        __m512 (&sums)[kTileQueries][kVectors]) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    __m512bh of_lanes[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(&of_lanes[v], lanes + pair * lanes_stride + v * kLanes, sizeof of_lanes[v]);
    }
    for (int64_t i = 0; i < kTileQueries; ++i) {
      const __m512i bits = _mm512_set1_epi32(static_cast<int>(x[i * x_stride + pair]));
      __m512bh both;
      std::memcpy(&both, &bits, sizeof both);
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] = _mm512_dpbf16_ps(sums[i][v], both, of_lanes[v]);
      }
    }
  }
}

// 2^x for x ≤ 0 within 3e-6 of itself: 2^n · 2^f with |f| ≤ 1/2. Below −160 it is 0; NaN stays.
inline __m512 PowerOfTwo(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-160.0F), x);
  const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(x, n);
  __m512 sum = _mm512_set1_ps(1.3333558e-3F);
  for (const float factor : {9.6181291e-3F, 5.5504109e-2F, 2.4022651e-1F, 6.9314718e-1F, 1.0F}) {
    sum = _mm512_fmadd_ps(sum, f, _mm512_set1_ps(factor));
  }
  return _mm512_scalef_ps(sum, n);
}

class CausalAttention {
 public:
  explicit CausalAttention(const AttendArgs& args)
      : args_(args),
        queries_(args.q.rows * args.repeat),
        pairs_((args.dim + 1) / 2),
        width_(RoundUp(args.dim, kSpanNumbers)),
        padded_(RoundUp(queries_, kTileQueries)),
        scratch_(static_cast<size_t>(Numbers()) * sizeof(float)) {
    float* next = scratch_.floats();
    const auto take = [&next](int64_t numbers) {
      float* const taken = next;
      next += numbers;
      return taken;
    };
    out_ = take(padded_ * width_);
    totals_ = take(padded_ * kLanes);
    keys_ = reinterpret_cast<uint32_t*>(take(pairs_ * kTileKeys));
    values_ = reinterpret_cast<uint32_t*>(take(kTileKeys / 2 * width_));
    q_ = reinterpret_cast<uint32_t*>(take(padded_ * pairs_));
    tops_ = take(padded_);
    std::fill(out_, out_ + padded_ * width_, 0.0F);
    std::fill(totals_, totals_ + padded_ * kLanes, 0.0F);
    std::fill(tops_, tops_ + padded_, -std::numeric_limits<float>::infinity());
    LoadQueries();
  }

  void Run() const {
    const int64_t seen = args_.own->offset + args_.q.rows;
    for (int64_t first = 0; first < seen; first += kTileKeys) {
      const int64_t count = std::min(kTileKeys, seen - first);
      LoadKeys(first, count);
      LoadValues(first, count);
      for (int64_t query = 0; query < queries_; query += kTileQueries) {
        if (Limit(query + kTileQueries - 1) > first) Tile(query, first, count);
      }
    }
    for (int64_t query = 0; query < queries_; ++query) Store(query);
  }

 private:
  int64_t Numbers() const {
    return padded_ * (width_ + kLanes + pairs_ + 1) + pairs_ * kTileKeys + kTileKeys / 2 * width_;
  }

  // How many keys a query sees. Those that only fill the last tile see what the last one does.
  int64_t Limit(int64_t query) const {
    return args_.own->offset + std::min(query, queries_ - 1) / args_.repeat + 1;
  }

  void LoadQueries() const {
    std::fill(q_, q_ + padded_ * pairs_, 0U);
    for (int64_t query = 0; query < queries_; ++query) {
      const auto* row = static_cast<const uint16_t*>(args_.q.Row(query / args_.repeat));
      std::memcpy(q_ + query * pairs_, row + query % args_.repeat * args_.dim,
                  static_cast<size_t>(args_.dim) * sizeof(uint16_t));
    }
  }

  // [pair of dimensions, key]; those that aren't there are 0.
  void LoadKeys(int64_t first, int64_t count) const {
    const auto* from = static_cast<const uint16_t*>(args_.own->kv.keys) + first * args_.dim;
    if (count < kTileKeys) std::fill(keys_, keys_ + pairs_ * kTileKeys, 0U);
    for (int64_t key = 0; key < count; ++key) {
      const uint16_t* row = from + key * args_.dim;
      for (int64_t pair = 0; pair < args_.dim / 2; ++pair) {
        std::memcpy(keys_ + pair * kTileKeys + key, row + pair * 2, sizeof(uint32_t));
      }
      if (args_.dim % 2 != 0) keys_[args_.dim / 2 * kTileKeys + key] = row[args_.dim - 1];
    }
  }

  // [pair of keys, dimension]; those that aren't there are 0.
  void LoadValues(int64_t first, int64_t count) const {
    const auto* from = static_cast<const uint16_t*>(args_.own->kv.values) + first * args_.dim;
    std::fill(values_, values_ + kTileKeys / 2 * width_, 0U);
    for (int64_t key = 0; key < count; key += 2) {
      const uint16_t* low = from + key * args_.dim;
      uint32_t* to = values_ + key / 2 * width_;
      for (int64_t i = 0; i < args_.dim; ++i) to[i] = low[i];
      if (key + 1 == count) break;
      const uint16_t* high = low + args_.dim;
      for (int64_t i = 0; i < args_.dim; ++i) to[i] |= static_cast<uint32_t>(high[i]) << 16;
    }
  }

  // Six queries over the `count` keys of a tile.
  void Tile(int64_t query, int64_t first, int64_t count) const {
    alignas(64) float scores[kTileQueries][kTileKeys];
    alignas(64) uint32_t weights[kTileQueries][kTileKeys / 2];
    float decays[kTileQueries];
    Scores(query, scores);
    for (int64_t i = 0; i < kTileQueries; ++i) {
      decays[i] = Weigh(query + i, Limit(query + i) - first, scores[i], weights[i]);
    }
    for (int64_t at = 0; at < width_; at += kSpanNumbers) {
      AddValues(query, at, (count + 1) / 2, decays, weights[0]);
    }
  }

  void Scores(int64_t query, float (&scores)[kTileQueries][kTileKeys]) const {
    __m512 sums[kTileQueries][kVectors];
    for (auto& of_query : sums) std::fill(of_query, of_query + kVectors, _mm512_setzero_ps());
    AddProducts(q_ + query * pairs_, pairs_, keys_, kTileKeys, pairs_, sums);
    for (int64_t i = 0; i < kTileQueries; ++i) {
      for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(scores[i] + v * kLanes, sums[i][v]);
    }
  }

  // A query's scores to weights, of which only the first `limit` count. Returns by what the sums so
  // far shrink.
  float Weigh(int64_t query, int64_t limit, const float* scores, uint32_t* weights) const {
    constexpr float kLog2E = 1.44269504088896341F;
    const __m512 scale = _mm512_set1_ps(args_.scale * kLog2E);
    const __m512 hidden = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
    const uint64_t seen =
        limit >= kTileKeys ? ~uint64_t{0} : (uint64_t{1} << std::max<int64_t>(limit, 0)) - 1;
    __m512 x[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const auto mask = static_cast<__mmask16>(seen >> (v * kLanes));
      x[v] = _mm512_mask_mul_ps(hidden, mask, _mm512_loadu_ps(scores + v * kLanes), scale);
    }
    const __m512 best = _mm512_max_ps(_mm512_max_ps(x[0], x[1]), _mm512_max_ps(x[2], x[3]));
    const float old_top = tops_[query], top = std::max(old_top, _mm512_reduce_max_ps(best));
    tops_[query] = top;
    for (__m512& v : x) v = PowerOfTwo(_mm512_sub_ps(v, _mm512_set1_ps(top)));
    const __m512bh pairs[] = {_mm512_cvtne2ps_pbh(x[1], x[0]), _mm512_cvtne2ps_pbh(x[3], x[2])};
    std::memcpy(weights, pairs, sizeof pairs);
    const __m512 decay = PowerOfTwo(_mm512_set1_ps(old_top - top));
    const __m512 sum = _mm512_add_ps(_mm512_add_ps(x[0], x[1]), _mm512_add_ps(x[2], x[3]));
    float* total = totals_ + query * kLanes;
    _mm512_storeu_ps(total, _mm512_fmadd_ps(_mm512_loadu_ps(total), decay, sum));
    return _mm512_cvtss_f32(decay);
  }

  // The dimensions from `at` on.
  void AddValues(int64_t query, int64_t at, int64_t key_pairs, const float* decays,
                 const uint32_t* weights) const {
    float* out = out_ + query * width_ + at;
    __m512 sums[kTileQueries][kVectors];
    for (int64_t i = 0; i < kTileQueries; ++i) {
      const __m512 decay = _mm512_set1_ps(decays[i]);
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] = _mm512_mul_ps(_mm512_loadu_ps(out + i * width_ + v * kLanes), decay);
      }
    }
    AddProducts(weights, kTileKeys / 2, values_ + at, width_, key_pairs, sums);
    for (int64_t i = 0; i < kTileQueries; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        _mm512_storeu_ps(out + i * width_ + v * kLanes, sums[i][v]);
      }
    }
  }

  void Store(int64_t query) const {
    auto* to = static_cast<uint16_t*>(args_.out.Row(query / args_.repeat)) +
               query % args_.repeat * args_.dim;
    const float* from = out_ + query * width_;
    const float total = _mm512_reduce_add_ps(_mm512_loadu_ps(totals_ + query * kLanes));
    const __m512 share = _mm512_set1_ps(1.0F / total);
    for (int64_t i = 0; i < args_.dim; i += kLanes) {
      const auto mask = static_cast<__mmask16>((1U << std::min(kLanes, args_.dim - i)) - 1);
      const __m512 sums = _mm512_loadu_ps(from + i);
      // Plus 0: a row that other rows have brought to tiles it doesn't see has no −0 left.
      const __m512 y = _mm512_fmadd_ps(sums, share, _mm512_setzero_ps());
      _mm256_mask_storeu_epi16(to + i, mask, Round(y));
    }
  }

  const AttendArgs& args_;
  int64_t queries_;  // T · repeat
  int64_t pairs_;    // of a head's dimensions
  int64_t width_;    // of a row of sums
  int64_t padded_;   // queries, in whole tiles
  Scratch scratch_;
  float* out_;        // [padded, width]
  float* totals_;     // [padded, 16]: sums of weights by lane
  float* tops_;       // [padded]: largest scores so far, of the base 2
  uint32_t* q_;       // [padded, pairs]
  uint32_t* keys_;    // [pairs, 64]
  uint32_t* values_;  // [32, width]
};

}  // namespace

void Bf16AttendCausal(const AttendArgs& args) { CausalAttention(args).Run(); }

}  // namespace docmem::engine
