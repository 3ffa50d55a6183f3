#include "engine/model/fused_layers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/model/tensor_matrix.h"
#include "engine/model/transformer.h"

namespace docmem::engine {
namespace {

std::vector<float> Widened(const at::Tensor& vector) {
  const at::Tensor wide = vector.to(at::kFloat).contiguous();
  const float* data = wide.const_data_ptr<float>();
  return {data, data + wide.numel()};
}

using Modules = std::span<const Module>;
constexpr std::array kQkv = {Module::kQ, Module::kK, Module::kV};
constexpr std::array kO = {Module::kO};
constexpr std::array kGateUp = {Module::kGate, Module::kUp};
constexpr std::array kDown = {Module::kDown};

PackedMatrix Pack(const LayerWeights& weights, Modules modules, NumberType type,
                  const std::shared_ptr<HugeBuffer>& buffer) {
  std::vector<Matrix> matrices;
  for (const Module module : modules) {
    matrices.push_back(MatrixOf(weights.matrix[static_cast<size_t>(module)]));
  }
  return {matrices, type, buffer};
}

// What all packed matrices take together: padded panels aside, what the matrices have.
size_t BufferBytes(const Weights& weights, NumberType type) {
  constexpr size_t kPerMatrix = 64;
  const auto bytes = [type](const at::Tensor& m) {
    return PackedMatrix::BufferBytes(m.size(0), m.size(1), type) + kPerMatrix;
  };
  size_t total = bytes(weights.head);
  for (const LayerWeights& layer : weights.layers) {
    for (const at::Tensor& matrix : layer.matrix) total += bytes(matrix);
  }
  return total;
}

std::vector<float> Biases(const LayerWeights& weights, Modules modules) {
  std::vector<float> biases;
  for (const Module module : modules) {
    const at::Tensor& bias = weights.bias[static_cast<size_t>(module)];
    if (!bias.defined()) continue;
    const std::vector<float> wide = Widened(bias);
    biases.insert(biases.end(), wide.begin(), wide.end());
  }
  return biases;
}

// y = x Wᵀ + bias + the adapters' updates; ends behind a barrier.
struct Product {
  const KernelTable& kernels;
  const PackedMatrix& weights;
  const std::vector<float>& bias;
  Matrix x, y;
  const LoraUpdates& updates;

  void Run(const Worker& worker) const {
    updates.Down(kernels, worker);
    const auto [first, count] = worker.Share(weights.panels(), 2);
    kernels.linear({&weights, bias.empty() ? nullptr : bias.data(), x, y, first, count});
    Worker::Barrier();
    if (updates.empty()) return;
    updates.Up(kernels, worker);
    Worker::Barrier();
  }
};

struct Norm {
  const KernelTable& kernels;
  const std::vector<float>& weight;
  float eps;

  void Run(const Matrix& x, const Matrix& y, const Worker& worker) const {
    const auto [first, count] = worker.Share(x.rows);
    kernels.rms_norm(x.Rows(first, count), weight.data(), eps, y.Rows(first, count));
  }
  // Every head of some rows on its own. x [T, heads · D], in place.
  void RunHeads(const Matrix& x, int64_t dim, const Worker& worker) const {
    const auto [first, count] = worker.Share(x.rows);
    for (int64_t row = first; row < first + count; ++row) {
      const Matrix heads = {x.Row(row), x.type, x.columns / dim, dim, dim};
      kernels.rms_norm(heads, weight.data(), eps, heads);
    }
  }
};

}  // namespace

FusedLayers::FusedLayers(const ModelConfig& config, const Weights& weights,
                         const KernelOptions& options)
    : config_(config),
      kernels_(KernelsOf(options.path)),
      eps_(static_cast<float>(config.rms_norm_eps)),
      final_norm_(Widened(weights.final_norm)) {
  const auto optional = [](const at::Tensor& norm) {
    return norm.defined() ? Widened(norm) : std::vector<float>();
  };
  const NumberType type =
      options.int8_weights ? NumberType::kInt8 : NumberTypeOf(weights.embedding);
  const auto buffer = std::make_shared<HugeBuffer>(BufferBytes(weights, type));
  for (const LayerWeights& layer : weights.layers) {
    layers_.push_back({.qkv = Pack(layer, kQkv, type, buffer),
                       .o = Pack(layer, kO, type, buffer),
                       .gate_up = Pack(layer, kGateUp, type, buffer),
                       .down = Pack(layer, kDown, type, buffer),
                       .qkv_bias = Biases(layer, kQkv),
                       .o_bias = Biases(layer, kO),
                       .gate_up_bias = Biases(layer, kGateUp),
                       .down_bias = Biases(layer, kDown),
                       .input_norm = Widened(layer.input_norm),
                       .post_attention_norm = Widened(layer.post_attention_norm),
                       .q_norm = optional(layer.q_norm),
                       .k_norm = optional(layer.k_norm)});
  }
  const Matrix head = MatrixOf(weights.head);
  head_ = PackedMatrix({&head, 1}, type, buffer);
}

uint64_t FusedLayers::bytes() const {
  uint64_t bytes = head_.bytes();
  for (const Layer& layer : layers_) {
    bytes += layer.qkv.bytes() + layer.o.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  }
  return bytes;
}

FusedLayers::Buffers::Buffers(const ModelConfig& config, int64_t rows,
                              const at::TensorOptions& options) {
  const int64_t q_width = config.query_heads * config.head_dim;
  const int64_t qkv_width = q_width + 2 * config.kv_heads * config.head_dim;
  const int64_t widths[] = {
      config.hidden_size,           config.hidden_size,      qkv_width, q_width,
      2 * config.intermediate_size, config.intermediate_size};
  Matrix* const targets[] = {&x, &residual, &qkv, &attended, &gate_up, &inner};
  for (size_t i = 0; i < std::size(widths); ++i) {
    tensors.push_back(at::empty({rows, widths[i]}, options));
    *targets[i] = MatrixOf(tensors.back());
  }
}

FusedLayers::Updates::Updates(const ModelConfig& config, int64_t layer,
                              std::span<const AdapterSpan> adapters, const Buffers& buffers,
                              const Matrix& result)
    : qkv(config, layer, kQkv, adapters, buffers.x, buffers.qkv),
      o(config, layer, kO, adapters, buffers.attended, buffers.residual),
      gate_up(config, layer, kGateUp, adapters, buffers.x, buffers.gate_up),
      down(config, layer, kDown, adapters, buffers.inner, result) {}

void FusedLayers::ProjectOn(const Worker& worker, int64_t layer, const Matrix& hidden,
                            const Buffers& buffers, const LoraUpdates& updates) const {
  const Layer& weights = layers_[static_cast<size_t>(layer)];
  Norm{kernels_, weights.input_norm, eps_}.Run(hidden, buffers.x, worker);
  Worker::Barrier();
  Product{kernels_, weights.qkv, weights.qkv_bias, buffers.x, buffers.qkv, updates}.Run(worker);
  if (!config_.qk_norm) return;
  const int64_t dim = config_.head_dim, q_width = config_.query_heads * dim;
  Norm{kernels_, weights.q_norm, eps_}.RunHeads(buffers.qkv.Columns(0, q_width), dim, worker);
  Norm{kernels_, weights.k_norm, eps_}.RunHeads(
      buffers.qkv.Columns(q_width, config_.kv_heads * dim), dim, worker);
  Worker::Barrier();
}

void FusedLayers::FinishOn(const Worker& worker, int64_t layer, const Matrix& hidden,
                           const Buffers& buffers, const Updates& updates,
                           const Matrix& result) const {
  const Layer& weights = layers_[static_cast<size_t>(layer)];
  const auto [first, count] = worker.Share(hidden.rows);
  const Matrix residual = buffers.residual.Rows(first, count);
  Product{kernels_, weights.o, weights.o_bias, buffers.attended, buffers.residual, updates.o}.Run(
      worker);
  kernels_.add(hidden.Rows(first, count), residual);
  Norm{kernels_, weights.post_attention_norm, eps_}.Run(buffers.residual, buffers.x, worker);
  Worker::Barrier();
  Product{kernels_,  weights.gate_up, weights.gate_up_bias,
          buffers.x, buffers.gate_up, updates.gate_up}
      .Run(worker);
  const int64_t width = config_.intermediate_size;
  const auto [column, columns] = worker.Share(width, 16);
  kernels_.silu_multiply(buffers.gate_up.Columns(column, columns),
                         buffers.gate_up.Columns(width + column, columns),
                         buffers.inner.Columns(column, columns));
  Worker::Barrier();
  Product{kernels_, weights.down, weights.down_bias, buffers.inner, result, updates.down}.Run(
      worker);
  kernels_.add(residual, result.Rows(first, count));
}

at::Tensor FusedLayers::Project(int64_t layer, const at::Tensor& hidden,
                                std::span<const AdapterSpan> adapters) const {
  const Buffers buffers(config_, hidden.size(0), hidden.options());
  const LoraUpdates updates(config_, layer, kQkv, adapters, buffers.x, buffers.qkv);
  OnAllWorkers(
      [&](const Worker& worker) { ProjectOn(worker, layer, MatrixOf(hidden), buffers, updates); });
  return buffers.qkv_tensor();
}

at::Tensor FusedLayers::Finish(int64_t layer, const at::Tensor& hidden, const at::Tensor& attended,
                               std::span<const AdapterSpan> adapters) const {
  Buffers buffers(config_, hidden.size(0), hidden.options());
  buffers.attended = MatrixOf(attended);
  const at::Tensor result = at::empty_like(hidden);
  const Updates updates(config_, layer, adapters, buffers, MatrixOf(result));
  OnAllWorkers([&](const Worker& worker) {
    FinishOn(worker, layer, MatrixOf(hidden), buffers, updates, MatrixOf(result));
  });
  return result;
}

void FusedLayers::Forward(const at::Tensor& hidden, std::span<const AdapterSpan> adapters,
                          const AttendLayer& attend) const {
  const Buffers buffers(config_, hidden.size(0), hidden.options());
  const Matrix rows = MatrixOf(hidden);
  std::vector<Updates> updates;
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    updates.emplace_back(config_, layer, adapters, buffers, rows);
  }
  OnAllWorkers([&](const Worker& worker) {
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      const Updates& changes = updates[static_cast<size_t>(layer)];
      ProjectOn(worker, layer, rows, buffers, changes.qkv);
      attend(worker, layer, buffers.qkv, buffers.attended);
      Worker::Barrier();
      FinishOn(worker, layer, rows, buffers, changes, rows);
    }
  });
}

at::Tensor FusedLayers::Rotate(const at::Tensor& x, const at::Tensor& cosine,
                               const at::Tensor& sine) const {
  const at::Tensor y = at::empty(x.sizes(), x.options());
  const Matrix from = MatrixOf(x), to = MatrixOf(y);
  const int64_t half = x.size(2) / 2;
  const float* c = cosine.const_data_ptr<float>();
  const float* s = sine.const_data_ptr<float>();
  const auto rotate = [&](int64_t first, int64_t count) {
    kernels_.rotate(from.Rows(first, count), x.size(2), c + first * half, s + first * half,
                    to.Rows(first, count));
  };
  constexpr int64_t kWorthSharing = 16;
  if (x.size(0) < kWorthSharing) {
    rotate(0, x.size(0));
  } else {
    OnAllWorkers([&](const Worker& worker) {
      const auto [first, count] = worker.Share(from.rows);
      rotate(first, count);
    });
  }
  return y;
}

at::Tensor FusedLayers::AttendCausal(const at::Tensor& q, const at::Tensor& keys,
                                     const at::Tensor& values, int64_t offset) const {
  if (kernels_.attend_causal == nullptr || q.scalar_type() != at::kBFloat16) return {};
  const int64_t rows = q.size(0), dim = q.size(2), width = q.size(1) / keys.size(0) * dim;
  const at::Tensor out = at::empty(q.sizes(), q.options());
  const Matrix from = MatrixOf(q), to = MatrixOf(out);
  const auto attend = [&](int64_t head, int64_t first, int64_t count) {
    const int64_t seen = offset + first + count;
    const KvSpan kv = {keys[head].const_data_ptr(), values[head].const_data_ptr(), seen, from.type};
    const OwnRows own = {kv, count, offset + first};
    kernels_.attend_causal({.q = from.Columns(head * width, width).Rows(first, count),
                            .out = to.Columns(head * width, width).Rows(first, count),
                            .repeat = width / dim,
                            .dim = dim,
                            .scale = 1.0F / std::sqrt(static_cast<float>(dim)),
                            .own = &own,
                            .sequences = 1});
  };
  OnAllWorkers([&](const Worker& worker) {  // equal parts of all heads' rows
    auto [first, left] = worker.Share(keys.size(0) * rows);
    while (left > 0) {
      const int64_t count = std::min(left, rows - first % rows);
      attend(first / rows, first % rows, count);
      first += count;
      left -= count;
    }
  });
  return out;
}

at::Tensor FusedLayers::Logits(const at::Tensor& hidden) const {
  const at::Tensor x = at::empty_like(hidden);
  const at::Tensor logits =
      at::empty({hidden.size(0), head_.outputs()}, hidden.options().dtype(at::kFloat));
  const Norm norm = {kernels_, final_norm_, eps_};
  OnAllWorkers([&](const Worker& worker) {
    norm.Run(MatrixOf(hidden), MatrixOf(x), worker);
    Worker::Barrier();
    const auto [first, count] = worker.Share(head_.panels(), 2);
    kernels_.linear({&head_, nullptr, MatrixOf(x), MatrixOf(logits), first, count});
  });
  return logits;
}

}  // namespace docmem::engine
