#include "engine/artifacts/adapter_file.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "engine/artifacts/adapter.h"
#include "engine/artifacts/number_text.h"
#include "engine/artifacts/sealed_file.h"
#include "engine/artifacts/tensor_bytes.h"
#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

constexpr const char* kName = "packed adapter";
constexpr const char* kFormatKey = "format";
constexpr const char* kFormat = "docmem-adapter";
constexpr const char* kVersionKey = "format_version";
constexpr const char* kVersion = "1";
constexpr const char* kContentHashKey = "content_hash";
constexpr const char* kLayersKey = "layers";
constexpr size_t kAlignment = 64;

std::string ModuleKey(size_t layer, int module) {
  return std::to_string(layer) + "." + std::string(ModuleName(static_cast<Module>(module)));
}

std::string ScaleKey(const std::string& module) { return "scale." + module; }

std::string Field(const SafetensorsView& view, const std::string& key) {
  const auto found = view.metadata().find(key);
  if (found == view.metadata().end()) {
    ThrowDataLoss(key, "the packed adapter lacks this field");
  }
  return found->second;
}

void RequireFormat(const SafetensorsView& view, const ModelConfig& model) {
  if (Field(view, kFormatKey) != kFormat) {
    ThrowDataLoss("header", "this isn't a packed adapter");
  }
  if (Field(view, kVersionKey) != kVersion) {
    ThrowFailedPrecondition(kVersionKey,
                            "the packed adapter has another format version; upload "
                            "the adapter again");
  }
  if (Field(view, kLayersKey) != std::to_string(model.layers)) {
    ThrowFailedPrecondition(kLayersKey, "the adapter was packed for " + Field(view, kLayersKey) +
                                            " layers, the model has " +
                                            std::to_string(model.layers));
  }
}

at::Tensor Matrix(const SafetensorsView& view, const SharedBytes& file, const std::string& name,
                  at::ScalarType dtype) {
  const TensorInfo* info = view.Find(name);
  if (info == nullptr || info->shape.size() != 2) {
    ThrowDataLoss(name, "isn't a matrix of the packed adapter");
  }
  if (info->dtype != FileDType(dtype)) {
    ThrowFailedPrecondition(name, "the adapter was packed as " +
                                      std::string(DTypeName(info->dtype)) +
                                      ", the model computes in " + at::toString(dtype));
  }
  return AliasBytes(view.Data(*info), *info, file.owner, name);
}

void RequireShape(const LoraPair& pair, const LinearShape& shape, const std::string& module) {
  if (pair.a.size(1) != shape.in || pair.b.size(0) != shape.out ||
      pair.a.size(0) != pair.b.size(1)) {
    ThrowFailedPrecondition(module, "the adapter was packed for another model's shapes");
  }
}

LoraPair ReadPair(const SafetensorsView& view, const SharedBytes& file, const std::string& module,
                  at::ScalarType dtype) {
  const auto scale = ParseNumber(Field(view, ScaleKey(module)));
  if (!scale) {
    ThrowDataLoss(ScaleKey(module), "isn't a number");
  }
  return {.a = Matrix(view, file, module + ".a", dtype),
          .b = Matrix(view, file, module + ".b", dtype),
          .scale = *scale};
}

}  // namespace

std::string PackedAdapterFile(const std::string& content_hash, const LoraWeights& weights) {
  MetadataMap metadata = {{kFormatKey, kFormat},
                          {kVersionKey, kVersion},
                          {kContentHashKey, content_hash},
                          {kLayersKey, std::to_string(weights.layers.size())}};
  std::vector<TensorSource> sections;
  for (size_t layer = 0; layer < weights.layers.size(); ++layer) {
    for (int module = 0; module < kModuleCount; ++module) {
      const LoraPair& pair = weights.layers[layer][static_cast<size_t>(module)];
      if (pair.defined()) {
        const std::string key = ModuleKey(layer, module);
        metadata[ScaleKey(key)] = NumberText(pair.scale);
        sections.push_back(SectionOf(key + ".a", pair.a));
        sections.push_back(SectionOf(key + ".b", pair.b));
      }
    }
  }
  std::string file;
  WriteSealedFile(sections, metadata, kAlignment, [&file](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return file;
}

std::shared_ptr<const Adapter> ReadPackedAdapter(SharedBytes file, const ModelConfig& model,
                                                 at::ScalarType dtype, at::Device device) {
  const SafetensorsView view = OpenSealedFile(file.bytes, kName);
  RequireFormat(view, model);
  LoraWeights weights;
  weights.layers.resize(static_cast<size_t>(model.layers));
  for (size_t layer = 0; layer < weights.layers.size(); ++layer) {
    for (int module = 0; module < kModuleCount; ++module) {
      const std::string key = ModuleKey(layer, module);
      if (!view.metadata().contains(ScaleKey(key))) {
        continue;
      }
      LoraPair pair = ReadPair(view, file, key, dtype);
      RequireShape(pair, ShapeOf(static_cast<Module>(module), model), key);
      pair.a = pair.a.to(device);
      pair.b = pair.b.to(device);
      weights.layers[layer][static_cast<size_t>(module)] = std::move(pair);
    }
  }
  return std::make_shared<const Adapter>(Field(view, kContentHashKey), std::move(weights));
}

}  // namespace docmem::engine
