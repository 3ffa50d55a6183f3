#include "engine/compression/scorer_compactor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

constexpr double kJitter = 1e-2;
constexpr int kFactorisations = 5;
constexpr double kPaddedKeyScore = -1e-9;
constexpr double kStdFloor = 1e-6;
// Rows that are centred, sketched or solved at a time.
constexpr int64_t kBlockRows = 4096;

std::string LayerName(int64_t layer) { return "layer " + std::to_string(layer); }

// Keys after centring and sketching, made block by block whenever they are needed: kept for all
// rows they would take more memory than the keys themselves.
class SketchedKeys {
 public:
  // keys [G, M, D], projection [G, D, 48] fp32
  SketchedKeys(const at::Tensor& keys, const at::Tensor& projection)
      : keys_(keys), projection_(projection) {
    mean_ = at::zeros({keys.size(0), 1, keys.size(2)}, projection.options());
    ForEachBlock([&](int64_t row, int64_t count) {
      mean_ += keys_.narrow(1, row, count).sum(1, /*keepdim=*/true, at::kFloat);
    });
    mean_ /= keys.size(1);
  }

  template <typename Visit>
  void ForEachBlock(Visit visit) const {
    for (int64_t row = 0; row < keys_.size(1); row += kBlockRows) {
      visit(row, std::min(kBlockRows, keys_.size(1) - row));
    }
  }

  // [G, count, 48]
  at::Tensor Rows(int64_t row, int64_t count) const {
    return at::matmul(keys_.narrow(1, row, count).to(at::kFloat) - mean_, projection_);
  }

 private:
  at::Tensor keys_, projection_;
  at::Tensor mean_;  // [G, 1, D]
};

}  // namespace

at::Tensor GramFactor(const at::Tensor& gram, double jitter, int64_t layer) {
  const at::Tensor identity = at::eye(gram.size(-1), gram.options());
  for (int i = 0; i < kFactorisations; ++i, jitter *= 10.0) {
    const auto [factor, info] = at::linalg_cholesky_ex(gram + identity * jitter);
    if (info.eq(0).all().item<bool>()) return factor;
  }
  ThrowInternal(LayerName(layer), "the sketched keys' Gram matrix can't be factorised");
}

at::Tensor CompactorLeverage(const at::Tensor& pre_rope_keys, const at::Tensor& sketch,
                             int64_t layer) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(sketch.size(2)));
  const SketchedKeys sketched(pre_rope_keys, sketch * scale);
  at::Tensor gram = at::zeros({sketch.size(0), sketch.size(2), sketch.size(2)}, sketch.options());
  sketched.ForEachBlock([&](int64_t row, int64_t count) {
    const at::Tensor x = sketched.Rows(row, count);
    gram += at::matmul(x.transpose(1, 2), x);
  });
  const at::Tensor factor = GramFactor(0.5 * (gram + gram.transpose(1, 2)), kJitter, layer);
  at::Tensor scores = at::empty({sketch.size(0), pre_rope_keys.size(1)}, sketch.options());
  sketched.ForEachBlock([&](int64_t row, int64_t count) {
    const at::Tensor x = sketched.Rows(row, count);
    const at::Tensor solved = at::cholesky_solve(x.transpose(1, 2), factor);
    scores.narrow(1, row, count).copy_((x * solved.transpose(1, 2)).sum(-1));
  });
  return scores.clamp_min_(0.0);
}

at::Tensor CompactorChunkAttention(const at::Tensor& queries, const at::Tensor& keys) {
  const int64_t rows = queries.size(0), heads = queries.size(1), groups = keys.size(0);
  const at::Tensor q = queries.transpose(0, 1).reshape({groups, heads / groups * rows, -1});
  at::Tensor scores = at::matmul(q, keys.transpose(1, 2));
  const int64_t padding = kCompactorChunk - rows;
  if (padding > 0) scores = at::constant_pad_nd(scores, {0, padding}, kPaddedKeyScore);
  const at::Tensor mass = at::softmax(scores, -1).narrow(-1, 0, rows);
  const double spread = static_cast<double>(padding) / static_cast<double>(kCompactorChunk);
  return mass.reshape({heads, rows, rows}).sum(1) + spread;
}

at::Tensor CompactorPool(const at::Tensor& scores) {
  return at::avg_pool1d(scores, /*kernel_size=*/3, /*stride=*/1, /*padding=*/1);
}

at::Tensor ZScore(const at::Tensor& x) {
  const at::Tensor centred = x - x.mean();
  if (x.numel() == 1) return centred / kStdFloor;
  return centred / x.std().clamp_min(kStdFloor);
}

CompactorScorer::CompactorScorer(const ModelConfig& model, const Protection& protection,
                                 const ScorerOptions& options)
    : first_scored_(protection.first_scored),
      scored_(protection.scored),
      sketch_(options.sketch ? options.sketch : PhiloxSketch(options.seed)) {
  const at::TensorOptions fp32 = at::TensorOptions(options.device).dtype(at::kFloat);
  const int64_t groups = model.kv_heads;
  pre_rope_keys_ = at::empty({groups, scored_, model.head_dim}, fp32.dtype(options.dtype));
  attention_ = at::empty({groups, scored_}, fp32);
  queries_ = at::empty({kCompactorChunk, model.query_heads, model.head_dim}, fp32);
}

void CompactorScorer::Add(const ScorerRows& rows) {
  const int64_t begin = std::max(rows.first_row, first_scored_);
  const int64_t end = std::min(rows.first_row + rows.queries.size(0), first_scored_ + scored_);
  if (begin >= end) return;
  pre_rope_keys_.narrow(1, begin - first_scored_, end - begin)
      .copy_(rows.pre_rope_keys.narrow(0, begin - rows.first_row, end - begin).transpose(0, 1));
  AddQueries(rows, begin - rows.first_row, end - begin);
}

void CompactorScorer::AddQueries(const ScorerRows& rows, int64_t first, int64_t count) {
  while (count > 0) {
    const int64_t taken = std::min(count, kCompactorChunk - chunk_rows_);
    queries_.narrow(0, chunk_rows_, taken).copy_(rows.queries.narrow(0, first, taken));
    chunk_rows_ += taken;
    first += taken;
    count -= taken;
    const bool last = scored_rows_ + chunk_rows_ == scored_;
    if (chunk_rows_ == kCompactorChunk || last) ScoreChunk(rows);
  }
}

void CompactorScorer::ScoreChunk(const ScorerRows& rows) {
  const int64_t position = first_scored_ + scored_rows_;
  const at::Tensor keys = rows.keys.narrow(1, position, chunk_rows_).to(at::kFloat);
  const at::Tensor values = rows.values.narrow(1, position, chunk_rows_).to(at::kFloat);
  const at::Tensor by_head = CompactorChunkAttention(queries_.narrow(0, 0, chunk_rows_), keys);
  const at::Tensor by_group = by_head.view({keys.size(0), -1, chunk_rows_}).mean(1);
  attention_.narrow(1, scored_rows_, chunk_rows_).copy_(by_group * values.norm(2, -1));
  scored_rows_ += chunk_rows_;
  chunk_rows_ = 0;
}

std::vector<at::Tensor> CompactorScorer::Finish(int64_t layer, const std::vector<double>& blends) {
  const SketchShape shape = {pre_rope_keys_.size(0), pre_rope_keys_.size(2),
                             kCompactorSketchColumns};
  const at::Tensor sketch = sketch_(layer, shape).to(attention_.device());
  const at::Tensor leverage = ZScore(CompactorLeverage(pre_rope_keys_, sketch, layer));
  const at::Tensor attention = ZScore(CompactorPool(attention_));
  if (!(leverage.sum() + attention.sum()).isfinite().item<bool>()) {
    ThrowInternal(LayerName(layer), "scores of the tokens aren't finite");
  }
  scored_rows_ = 0;
  std::vector<at::Tensor> scores;
  for (const double blend : blends) scores.push_back(leverage * blend + attention);
  return scores;
}

}  // namespace docmem::engine
