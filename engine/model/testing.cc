#include "engine/model/testing.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <stdlib.h>

#include <array>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/formats/safetensors.h"
#include "engine/model/attention.h"

namespace docmem::engine::testing {
namespace {

const std::vector<std::pair<DType, at::ScalarType>>& Types() {
  static const std::vector<std::pair<DType, at::ScalarType>> kTypes = {
      {DType::kF32, at::kFloat}, {DType::kBF16, at::kBFloat16}, {DType::kF16, at::kHalf},
      {DType::kI64, at::kLong},  {DType::kI32, at::kInt},       {DType::kF64, at::kDouble},
      {DType::kU8, at::kByte},   {DType::kI8, at::kChar},       {DType::kI16, at::kShort}};
  return kTypes;
}

at::ScalarType TypeOf(DType dtype) {
  for (const auto& [stored, type] : Types()) {
    if (stored == dtype) return type;
  }
  throw std::runtime_error("test file has an unexpected dtype");
}

DType TypeOf(at::ScalarType type) {
  for (const auto& [stored, known] : Types()) {
    if (known == type) return stored;
  }
  throw std::runtime_error("test tensor has an unexpected dtype");
}

struct RandomParameters {
  RandomParameters(at::ScalarType type, uint64_t seed)
      : dtype(type), source(at::make_generator<at::CPUGeneratorImpl>(seed)) {}

  void Matrix(const std::string& name, int64_t rows, int64_t columns) {
    tensors[name] = (at::randn({rows, columns}, source) / std::sqrt(columns)).to(dtype);
  }
  void Vector(const std::string& name, int64_t size, double mean) {
    tensors[name] = (at::randn({size}, source) * 0.1 + mean).to(dtype);
  }

  at::ScalarType dtype;
  at::Generator source;
  std::map<std::string, at::Tensor> tensors;
};

void AddLayer(const ModelConfig& config, int64_t layer, RandomParameters* random) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  random->Vector(prefix + "input_layernorm.weight", config.hidden_size, 1.0);
  random->Vector(prefix + "post_attention_layernorm.weight", config.hidden_size, 1.0);
  if (config.qk_norm) {
    random->Vector(prefix + "self_attn.q_norm.weight", config.head_dim, 1.0);
    random->Vector(prefix + "self_attn.k_norm.weight", config.head_dim, 1.0);
  }
  for (int i = 0; i < kModuleCount; ++i) {
    const Module module = static_cast<Module>(i);
    const bool mlp = module >= Module::kGate;
    const LinearShape shape = ShapeOf(module, config);
    const std::string name =
        prefix + (mlp ? "mlp." : "self_attn.") + std::string(ModuleName(module));
    random->Matrix(name + ".weight", shape.out, shape.in);
    if (mlp ? config.mlp_bias : config.attention_bias) {
      random->Vector(name + ".bias", shape.out, 0.0);
    }
  }
}

}  // namespace

std::filesystem::path Reference(const std::string& relative) {
  return std::filesystem::path(DOCMEM_SOURCE_DIR) / "tests/reference" / relative;
}

std::optional<std::filesystem::path> SmolLm2() {
#ifdef _GLIBCXX_TSAN
  return std::nullopt;
#endif
  const char* folder = std::getenv("DOCMEM_SMOLLM2");
  if (folder == nullptr) return std::nullopt;
  std::filesystem::path path(folder);
  if (!std::filesystem::exists(path / "config.json")) return std::nullopt;
  return path;
}

Transformer LoadModel(const std::filesystem::path& model_dir, at::ScalarType dtype) {
  ModelConfig config = ModelConfig::Load(model_dir);
  Weights weights = LoadWeights(model_dir, config, {.dtype = dtype});
  return Transformer(std::move(config), std::move(weights));
}

std::map<std::string, at::Tensor> LoadTensors(const std::filesystem::path& file) {
  const SafetensorsFile stored = SafetensorsFile::Open(file);
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, info] : stored.view().tensors()) {
    void* data = const_cast<std::byte*>(stored.view().Data(info).data());
    tensors[name] = at::from_blob(data, info.shape, TypeOf(info.dtype)).clone();
  }
  return tensors;
}

void SaveTensors(const std::filesystem::path& file,
                 const std::map<std::string, at::Tensor>& tensors) {
  std::vector<at::Tensor> keep;
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors) {
    keep.push_back(tensor.contiguous());
    const std::byte* data = static_cast<const std::byte*>(keep.back().const_data_ptr());
    sources.push_back(
        {{name, TypeOf(tensor.scalar_type()), tensor.sizes().vec()}, {data, keep.back().nbytes()}});
  }
  std::ofstream stream(file, std::ios::binary);
  WriteSafetensors(sources, {}, [&](std::span<const std::byte> bytes) {
    stream.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
  });
}

void MakeModel(const std::filesystem::path& model_dir, const std::string& config_json,
               at::ScalarType dtype, uint64_t seed) {
  std::filesystem::create_directories(model_dir);
  std::ofstream(model_dir / "config.json") << config_json;
  const ModelConfig config = ModelConfig::Parse(config_json, "");
  RandomParameters random(dtype, seed);
  random.Matrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size);
  random.Vector("model.norm.weight", config.hidden_size, 1.0);
  if (!config.tie_word_embeddings) {
    random.Matrix("lm_head.weight", config.vocab_size, config.hidden_size);
  }
  for (int64_t layer = 0; layer < config.layers; ++layer) AddLayer(config, layer, &random);
  SaveTensors(model_dir / "model.safetensors", random.tensors);
}

at::Tensor CausalLogits(const Transformer& model, const at::Tensor& ids,
                        const at::Tensor& positions, std::span<const AdapterSpan> adapters) {
  at::Tensor hidden = model.Embed(ids);
  for (int64_t layer = 0; layer < model.config().layers; ++layer) {
    const Qkv qkv = model.Project(layer, hidden, adapters);
    const at::Tensor keys = model.Rotate(qkv.k, model.RotationOf(positions)).transpose(0, 1);
    const at::Tensor attended =
        model.Attend(model.Rotate(qkv.q, model.RotationOf(positions)), keys.contiguous(),
                     qkv.v.transpose(0, 1).contiguous(), /*offset=*/0);
    hidden = model.Finish(layer, hidden, attended, adapters);
  }
  return model.Logits(hidden);
}

at::Tensor CausalLogits(const Transformer& model, const at::Tensor& ids,
                        std::span<const AdapterSpan> adapters) {
  return CausalLogits(model, ids, at::arange(ids.size(0), at::kLong), adapters);
}

LoraWeights RandomLora(const ModelConfig& config, std::span<const Module> modules, int64_t rank,
                       at::ScalarType dtype, uint64_t seed) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(seed);
  LoraWeights lora;
  lora.layers.resize(static_cast<size_t>(config.layers));
  for (auto& layer : lora.layers) {
    for (const Module module : modules) {
      const LinearShape shape = ShapeOf(module, config);
      LoraPair& pair = layer[static_cast<size_t>(module)];
      pair.a = (at::randn({rank, shape.in}, random) / std::sqrt(shape.in)).to(dtype);
      pair.b = (at::randn({shape.out, rank}, random) / std::sqrt(rank)).to(dtype);
      pair.scale = 0.5;
    }
  }
  return lora;
}

std::optional<Error> ErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kFloat) - b.to(at::kFloat)).abs().max().item<double>();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "docmem-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("can't make a temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace docmem::engine::testing
