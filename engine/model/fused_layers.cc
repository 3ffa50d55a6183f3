#include "engine/model/fused_layers.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>

#include "engine/kernels/parallel.h"
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

// The adapters' part in one product: what `down` holds for each, and where their outputs go.
class LoraUpdates {
 public:
  LoraUpdates(const ModelConfig& config, int64_t layer, Modules modules,
              std::span<const AdapterSpan> spans, const at::Tensor& x, const at::Tensor& y) {
    int64_t numbers = 0;
    for (const AdapterSpan& span : spans) {
      int64_t column = 0;
      for (const Module module : modules) {
        const int64_t outputs = ShapeOf(module, config).out;
        if (span.adapter != nullptr && span.rows > 0) {
          Add(span.adapter->At(layer, module), span, MatrixOf(x),
              MatrixOf(y).Columns(column, outputs), &numbers);
        }
        column += outputs;
      }
    }
    down_.resize(static_cast<size_t>(numbers));
    for (size_t i = 0; i < updates_.size(); ++i) updates_[i].down = down_.data() + offsets_[i];
  }

  bool empty() const { return updates_.empty(); }
  void Down(const KernelTable& kernels, const Worker& worker) const {
    for (const LoraArgs& update : updates_) {
      const auto [first, count] = worker.Share(update.a.rows);
      kernels.lora_down(update, first, count);
    }
  }
  void Up(const KernelTable& kernels, const Worker& worker) const {
    for (const LoraArgs& update : updates_) {
      const auto [first, count] = worker.Share(update.y.columns, 16);
      kernels.lora_up(update, first, count);
    }
  }

 private:
  void Add(const LoraPair& pair, const AdapterSpan& span, const Matrix& x, const Matrix& y,
           int64_t* numbers) {
    if (!pair.defined()) return;
    updates_.push_back({.a = MatrixOf(pair.a),
                        .b = MatrixOf(pair.b),
                        .scale = static_cast<float>(pair.scale),
                        .x = x.Rows(span.first_row, span.rows),
                        .y = y.Rows(span.first_row, span.rows)});
    offsets_.push_back(*numbers);
    *numbers += span.rows * pair.a.size(0);
  }

  std::vector<LoraArgs> updates_;
  std::vector<int64_t> offsets_;
  std::vector<float> down_;
};

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
    : config_(config), kernels_(KernelsOf(options.path)), final_norm_(Widened(weights.final_norm)) {
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

at::Tensor FusedLayers::Project(int64_t layer, const at::Tensor& hidden,
                                std::span<const AdapterSpan> adapters) const {
  const Layer& weights = layers_[static_cast<size_t>(layer)];
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  const int64_t q_width = config_.query_heads * config_.head_dim;
  const int64_t kv_width = config_.kv_heads * config_.head_dim;
  const at::Tensor x = at::empty_like(hidden);
  const at::Tensor qkv = at::empty({hidden.size(0), q_width + 2 * kv_width}, hidden.options());
  const LoraUpdates updates(config_, layer, kQkv, adapters, x, qkv);
  const Matrix out = MatrixOf(qkv);
  const Norm norm = {kernels_, weights.input_norm, eps};
  const Product product = {kernels_, weights.qkv, weights.qkv_bias, MatrixOf(x), out, updates};
  const Norm q_norm = {kernels_, weights.q_norm, eps}, k_norm = {kernels_, weights.k_norm, eps};
  OnAllWorkers([&](const Worker& worker) {
    norm.Run(MatrixOf(hidden), product.x, worker);
    Worker::Barrier();
    product.Run(worker);
    if (config_.qk_norm) {
      q_norm.RunHeads(out.Columns(0, q_width), config_.head_dim, worker);
      k_norm.RunHeads(out.Columns(q_width, kv_width), config_.head_dim, worker);
    }
  });
  return qkv;
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

at::Tensor FusedLayers::Finish(int64_t layer, const at::Tensor& hidden, const at::Tensor& attended,
                               std::span<const AdapterSpan> adapters) const {
  const Layer& weights = layers_[static_cast<size_t>(layer)];
  const int64_t rows = hidden.size(0), width = config_.intermediate_size;
  const at::Tensor residual = at::empty_like(hidden), x = at::empty_like(hidden);
  const at::Tensor gate_up = at::empty({rows, 2 * width}, hidden.options());
  const at::Tensor inner = at::empty({rows, width}, hidden.options());
  const at::Tensor result = at::empty_like(hidden);
  const LoraUpdates o_updates(config_, layer, kO, adapters, attended, residual);
  const LoraUpdates gate_up_updates(config_, layer, kGateUp, adapters, x, gate_up);
  const LoraUpdates down_updates(config_, layer, kDown, adapters, inner, result);
  const Product o = {kernels_,           weights.o,          weights.o_bias,
                     MatrixOf(attended), MatrixOf(residual), o_updates};
  const Product gated = {kernels_,    weights.gate_up,   weights.gate_up_bias,
                         MatrixOf(x), MatrixOf(gate_up), gate_up_updates};
  const Product down = {kernels_,        weights.down,     weights.down_bias,
                        MatrixOf(inner), MatrixOf(result), down_updates};
  const Norm norm = {kernels_, weights.post_attention_norm,
                     static_cast<float>(config_.rms_norm_eps)};
  OnAllWorkers([&](const Worker& worker) {
    const auto [first, count] = worker.Share(rows);
    o.Run(worker);
    kernels_.add(MatrixOf(hidden).Rows(first, count), o.y.Rows(first, count));
    norm.Run(o.y, gated.x, worker);
    Worker::Barrier();
    gated.Run(worker);
    const auto [column, columns] = worker.Share(width, 16);
    kernels_.silu_multiply(gated.y.Columns(column, columns),
                           gated.y.Columns(width + column, columns),
                           down.x.Columns(column, columns));
    Worker::Barrier();
    down.Run(worker);
    kernels_.add(o.y.Rows(first, count), down.y.Rows(first, count));
  });
  return result;
}

at::Tensor FusedLayers::Logits(const at::Tensor& hidden) const {
  const at::Tensor x = at::empty_like(hidden);
  const at::Tensor logits =
      at::empty({hidden.size(0), head_.outputs()}, hidden.options().dtype(at::kFloat));
  const Norm norm = {kernels_, final_norm_, static_cast<float>(config_.rms_norm_eps)};
  OnAllWorkers([&](const Worker& worker) {
    norm.Run(MatrixOf(hidden), MatrixOf(x), worker);
    Worker::Barrier();
    const auto [first, count] = worker.Share(head_.panels(), 2);
    kernels_.linear({&head_, nullptr, MatrixOf(x), MatrixOf(logits), first, count});
  });
  return logits;
}

}  // namespace docmem::engine
