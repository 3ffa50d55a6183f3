#include "engine/artifacts/testing.h"

#include <ATen/ATen.h>

#include <utility>

#include "engine/artifacts/cache_file.h"
#include "engine/artifacts/peft_tensors.h"
#include "engine/artifacts/tensor_bytes.h"

namespace docmem::engine::testing {
namespace {

at::Tensor Random(at::IntArrayRef shape, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  generator.set_current_seed(seed);
  return at::randn(shape, generator);
}

void Append(std::string& text, std::span<const std::byte> bytes) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// `count` ascending positions that start with the head and end with the context's last token.
std::vector<int32_t> Positions(const CacheShape& shape, int64_t count) {
  std::vector<int32_t> positions;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from_end = count - i;
    positions.push_back(
        static_cast<int32_t>(i < shape.head_tokens ? i : shape.context_tokens - from_end));
  }
  return positions;
}

}  // namespace

CacheIdentity SomeIdentity(const CacheShape& shape) {
  return {.model = {.weights_digest = "aa",
                    .config_digest = "bb",
                    .tokenizer_digest = "cc",
                    .dtype = "float32"},
          .context_digest = "dd",
          .context_tokens = shape.context_tokens,
          .head_tokens = shape.head_tokens,
          .ratio_ppm = 900'000,
          .kv_dtype = shape.dtype == at::kFloat ? "float32" : "bfloat16",
          .scorer = "base",
          .profile = "compactor"};
}

Cache RandomCache(const CacheShape& shape, uint64_t seed) {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> positions;
  for (int64_t i = 0; i < shape.layers * shape.kv_heads; ++i) {
    const int64_t kept = shape.kept[static_cast<size_t>(i) % shape.kept.size()];
    const std::vector<int32_t> rows = Positions(shape, kept);
    positions.insert(positions.end(), rows.begin(), rows.end());
    offsets.push_back(offsets.back() + kept);
  }
  KeptRows rows{.keys = Random({offsets.back(), shape.dim}, seed).to(shape.dtype),
                .values = Random({offsets.back(), shape.dim}, seed + 1).to(shape.dtype),
                .positions = at::tensor(positions, at::kInt),
                .offsets = at::tensor(offsets, at::kLong)};
  return Cache(SomeIdentity(shape), shape.layers, shape.kv_heads, std::move(rows));
}

std::string FileOf(const Cache& cache) {
  std::string file;
  WriteCacheFile(cache, [&file](std::span<const std::byte> bytes) { Append(file, bytes); });
  return file;
}

SharedBytes Share(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {.owner = owner, .bytes = std::as_bytes(std::span(*owner))};
}

std::string Safetensors(const std::map<std::string, at::Tensor>& tensors) {
  std::vector<at::Tensor> kept;
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.contiguous());
    sources.push_back(
        {.spec = {.name = name,
                  .dtype = tensor.scalar_type() == at::kHalf ? DType::kF16
                                                             : FileDType(tensor.scalar_type()),
                  .shape = tensor.sizes().vec()},
         .data = TensorBytes(kept.back())});
  }
  std::string file;
  WriteSafetensors(sources, {}, [&file](std::span<const std::byte> bytes) { Append(file, bytes); });
  return file;
}

PeftFolder PeftFiles::Folder() const {
  return {{"adapter_config.json", config}, {"adapter_model.safetensors", Safetensors(tensors)}};
}

PeftFiles SomeAdapter(const ModelConfig& model, const std::vector<std::string>& modules,
                      int64_t r) {
  PeftFiles files;
  std::string targets;
  uint64_t seed = 1;
  for (const std::string& module : modules) {
    targets += (targets.empty() ? "\"" : ", \"") + module.substr(module.find('.') + 1) + "\"";
    for (int64_t layer = 0; layer < model.layers; ++layer) {
      const std::string name =
          "base_model.model.model.layers." + std::to_string(layer) + "." + module;
      const auto parsed = ParseLoraTensorName(name + ".lora_A.weight");
      const LinearShape shape = ShapeOf(parsed.value().module, model);
      files.tensors[name + ".lora_A.weight"] = Random({r, shape.in}, seed++);
      files.tensors[name + ".lora_B.weight"] = Random({shape.out, r}, seed++);
    }
  }
  files.config = R"({"peft_type": "LORA", "base_model_name_or_path": "small", "r": )" +
                 std::to_string(r) + R"(, "lora_alpha": 8, "target_modules": [)" + targets + "]}";
  return files;
}

ModelConfig SmallModel() {
  ModelConfig model;
  model.vocab_size = 50;
  model.hidden_size = 16;
  model.intermediate_size = 24;
  model.layers = 2;
  model.query_heads = 4;
  model.kv_heads = 2;
  model.head_dim = 4;
  model.name = "small";
  return model;
}

}  // namespace docmem::engine::testing
