#include "engine/model/weights.h"

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "engine/model/weight_files.h"

namespace docmem::engine {
namespace {

std::optional<at::ScalarType> FloatType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    default:
      return std::nullopt;
  }
}

std::string ShapeText(at::IntArrayRef shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

// Takes tensors out of the files one by one and in the end knows which nobody wanted.
class Reader {
 public:
  Reader(WeightFiles files, const LoadWeightsOptions& options)
      : files_(std::make_shared<WeightFiles>(std::move(files))), options_(options) {}

  bool Has(const std::string& name) const { return files_->tensors().contains(name); }

  at::Tensor Take(const std::string& name, at::IntArrayRef shape) {
    const auto found = files_->tensors().find(name);
    if (found == files_->tensors().end()) {
      ThrowInvalidArgument(name, "is missing from the weights");
    }
    const StoredTensor& stored = found->second;
    const std::optional<at::ScalarType> type = FloatType(stored.info->dtype);
    if (!type) {
      ThrowUnimplemented(name, "has dtype " + std::string(DTypeName(stored.info->dtype)) +
                                   "; only F32, F16 and BF16 weights are supported");
    }
    if (at::IntArrayRef(stored.info->shape) != shape) {
      ThrowInvalidArgument(name, "has shape " + ShapeText(stored.info->shape) + ", but " +
                                     "config.json asks for " + ShapeText(shape));
    }
    if (taken_.insert(name).second && options_.progress) {
      options_.progress(static_cast<double>(taken_.size()) /
                        static_cast<double>(files_->tensors().size()));
    }
    return Materialise(stored, *type, shape);
  }

  void RequireAllTaken() const {
    for (const auto& [name, stored] : files_->tensors()) {
      // Older files carry the rotary frequencies, which the configuration determines.
      if (taken_.contains(name) || name.ends_with(".rotary_emb.inv_freq")) continue;
      ThrowUnimplemented(name, "the model has no such tensor (file " + stored.file->string() +
                                   "); quantised or extended weights aren't supported");
    }
  }

  // Of the tensors that aren't mapped.
  uint64_t owned_bytes() const { return owned_bytes_; }

 private:
  at::Tensor Materialise(const StoredTensor& stored, at::ScalarType type, at::IntArrayRef shape) {
    void* data = const_cast<std::byte*>(stored.bytes.data());
    const at::Tensor mapped =
        at::from_blob(data, shape, [files = files_](void*) {}, at::TensorOptions().dtype(type));
    const at::Tensor tensor = mapped.to(options_.device, options_.dtype);
    if (!tensor.is_alias_of(mapped)) owned_bytes_ += tensor.nbytes();
    return tensor;
  }

  std::shared_ptr<const WeightFiles> files_;
  const LoadWeightsOptions& options_;
  std::unordered_set<std::string> taken_;
  uint64_t owned_bytes_ = 0;
};

bool ModuleHasBias(Module module, const ModelConfig& config) {
  const bool mlp = module == Module::kGate || module == Module::kUp || module == Module::kDown;
  return mlp ? config.mlp_bias : config.attention_bias;
}

LayerWeights ReadLayer(Reader* reader, const ModelConfig& config, int64_t layer) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  LayerWeights weights;
  weights.input_norm = reader->Take(prefix + "input_layernorm.weight", {config.hidden_size});
  weights.post_attention_norm =
      reader->Take(prefix + "post_attention_layernorm.weight", {config.hidden_size});
  if (config.qk_norm) {
    weights.q_norm = reader->Take(prefix + "self_attn.q_norm.weight", {config.head_dim});
    weights.k_norm = reader->Take(prefix + "self_attn.k_norm.weight", {config.head_dim});
  }
  for (int i = 0; i < kModuleCount; ++i) {
    const Module module = static_cast<Module>(i);
    const LinearShape shape = ShapeOf(module, config);
    const std::string name =
        prefix + (module < Module::kGate ? "self_attn." : "mlp.") + std::string(ModuleName(module));
    weights.matrix[static_cast<size_t>(i)] = reader->Take(name + ".weight", {shape.out, shape.in});
    if (ModuleHasBias(module, config)) {
      weights.bias[static_cast<size_t>(i)] = reader->Take(name + ".bias", {shape.out});
    }
  }
  return weights;
}

at::Tensor ReadHead(Reader* reader, const ModelConfig& config, const at::Tensor& embedding) {
  const std::string name = "lm_head.weight";
  if (config.tie_word_embeddings && !reader->Has(name)) return embedding;
  const at::Tensor head = reader->Take(name, {config.vocab_size, config.hidden_size});
  if (!config.tie_word_embeddings) return head;
  if (!at::equal(head, embedding)) {
    ThrowInvalidArgument(name, "differs from the embedding, but config.json ties them");
  }
  return embedding;
}

}  // namespace

uint64_t Weights::count() const {
  int64_t total = embedding.numel() + final_norm.numel();
  if (!head.is_same(embedding)) total += head.numel();
  for (const LayerWeights& layer : layers) {
    total += layer.input_norm.numel() + layer.post_attention_norm.numel();
    if (layer.q_norm.defined()) total += layer.q_norm.numel() + layer.k_norm.numel();
    for (const at::Tensor& matrix : layer.matrix) total += matrix.numel();
    for (const at::Tensor& bias : layer.bias) total += bias.defined() ? bias.numel() : 0;
  }
  return static_cast<uint64_t>(total);
}

Weights LoadWeights(const std::filesystem::path& model_dir, const ModelConfig& config,
                    const LoadWeightsOptions& options) {
  Reader reader(WeightFiles::Open(model_dir), options);
  Weights weights;
  weights.embedding =
      reader.Take("model.embed_tokens.weight", {config.vocab_size, config.hidden_size});
  weights.final_norm = reader.Take("model.norm.weight", {config.hidden_size});
  weights.head = ReadHead(&reader, config, weights.embedding);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    weights.layers.push_back(ReadLayer(&reader, config, layer));
  }
  reader.RequireAllTaken();
  weights.owned_bytes = reader.owned_bytes();
  return weights;
}

}  // namespace docmem::engine
