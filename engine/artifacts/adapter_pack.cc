#include <ATen/ATen.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <utility>

#include "engine/artifacts/adapter.h"
#include "engine/artifacts/adapter_file.h"
#include "engine/artifacts/number_text.h"
#include "engine/artifacts/peft_config.h"
#include "engine/artifacts/peft_tensors.h"
#include "engine/artifacts/tensor_bytes.h"
#include "engine/formats/digest.h"
#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kTensorFile = "adapter_model.safetensors";

bool IsPickle(std::string_view name) {
  return name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth") ||
         name.ends_with(".pkl") || name.ends_with(".ckpt");
}

const std::string& RequireFile(const PeftFolder& folder, const char* name) {
  const auto found = folder.find(name);
  if (found != folder.end()) {
    return found->second;
  }
  for (const auto& [other, bytes] : folder) {
    if (name == std::string_view(kTensorFile) && IsPickle(other)) {
      ThrowUnimplemented(other.substr(0, 100),
                         "pickled files are never opened; convert the "
                         "adapter to adapter_model.safetensors");
    }
  }
  ThrowInvalidArgument(name, "is missing in the adapter's folder");
}

std::string ContentHash(const PeftFolder& folder) {
  Sha256 hash;
  for (const auto& [name, bytes] : folder) {
    hash.Update(std::to_string(name.size()) + ":" + name + std::to_string(bytes.size()) + ":");
    hash.Update(bytes);
  }
  return hash.Hex();
}

// "org/Model-1B" and "/models/model-1b/" name the same model as far as a name can tell.
std::string ModelKey(std::string_view name) {
  while (name.ends_with('/')) {
    name.remove_suffix(1);
  }
  std::string key(name.substr(name.rfind('/') + 1));
  std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
  return key;
}

void RequireBase(const PeftConfig& config, const PackAdapterOptions& options) {
  if (options.allow_other_base || config.base_model().empty() ||
      ModelKey(config.base_model()) == ModelKey(options.model_name)) {
    return;
  }
  ThrowFailedPrecondition("base_model_name_or_path",
                          "the adapter was made for \"" + config.base_model().substr(0, 200) +
                              "\", the running model is \"" + options.model_name +
                              "\"; set allow_other_base if the weights are the same");
}

void RequireHeadUntouched(const PeftConfig& config) {
  for (const char* module : {"lm_head", "model.embed_tokens"}) {
    if (config.IsTarget(module)) {
      ThrowUnimplemented("target_modules", std::string("covers ") + module +
                                               "; adapters on the output head or on embeddings "
                                               "aren't supported");
    }
  }
}

std::string ShapeText(const TensorInfo& info) {
  std::string text;
  for (const int64_t extent : info.shape) {
    text += (text.empty() ? "[" : ", ") + std::to_string(extent);
  }
  return text.empty() ? "[]" : text + "]";
}

void RequireShape(const std::string& name, const TensorInfo& info, int64_t rows, int64_t columns) {
  if (info.shape != std::vector<int64_t>{rows, columns}) {
    ThrowInvalidArgument(name, "has the shape " + ShapeText(info) +
                                   ", but rank and base model ask "
                                   "for [" +
                                   std::to_string(rows) + ", " + std::to_string(columns) + "]");
  }
}

void RequireRank(const std::string& module, int64_t rank, uint32_t max_rank) {
  if (rank > int64_t{max_rank}) {
    ThrowInvalidArgument("r", "the rank of " + module + " is " + std::to_string(rank) +
                                  ", the limit is " + std::to_string(max_rank));
  }
}

void RequireFinite(const at::Tensor& tensor, const std::string& name, const char* when) {
  if (!tensor.isfinite().all().item<bool>()) {
    ThrowInvalidArgument(name, std::string("holds NaN or infinity") + when);
  }
}

at::Tensor Load(const SafetensorsView& file, const std::string& name, at::ScalarType dtype) {
  const TensorInfo& info = file.Get(name);
  if (info.dtype != DType::kF32 && info.dtype != DType::kF16 && info.dtype != DType::kBF16) {
    ThrowInvalidArgument(
        name, "has dtype " + std::string(DTypeName(info.dtype)) + ", expected F32, F16 or BF16");
  }
  const at::Tensor stored = AliasBytes(file.Data(info), info, nullptr, name);
  RequireFinite(stored, name, "");
  at::Tensor packed = stored.to(dtype, false, true).contiguous();
  RequireFinite(packed, name, " in the model's dtype");
  return packed;
}

// One module's pair as the configuration and the model want it.
LoraPair LoadPair(const SafetensorsView& file, const LoraTensors& names,
                  const PeftConfig::ModuleSettings& settings, const LinearShape& shape,
                  at::ScalarType dtype) {
  RequireShape(names.a_name, file.Get(names.a_name), settings.rank, shape.in);
  RequireShape(names.b_name, file.Get(names.b_name), shape.out, settings.rank);
  return {.a = Load(file, names.a_name, dtype),
          .b = Load(file, names.b_name, dtype),
          .scale = settings.scale};
}

// Collects what an adapter does while it is packed.
class Packing {
 public:
  Packing(const SafetensorsView& file, const PeftConfig& config, const ModelConfig& model,
          const PackAdapterOptions& options)
      : file_(file), config_(config), model_(model), options_(options) {
    weights_.layers.resize(static_cast<size_t>(model.layers));
  }

  void Run() {
    const LoraTensorTable table = SortLoraTensors(file_, model_);
    for (int64_t layer = 0; layer < model_.layers; ++layer) {
      bool changed = false;
      for (int i = 0; i < kModuleCount; ++i) {
        changed |= PackModule(layer, static_cast<Module>(i),
                              table[static_cast<size_t>(layer)][static_cast<size_t>(i)]);
      }
      description_.layers_changed += changed ? 1 : 0;
    }
    if (description_.layers_changed == 0) {
      ThrowInvalidArgument(kTensorFile, "no tensor of the adapter matches a module of the model");
    }
    for (const auto& [module, texts] : settings_) {
      for (const std::string& text : texts) {
        std::string& listed = description_.modules[module];
        listed += (listed.empty() ? "" : ", ") + text;
      }
    }
    description_.base_model = config_.base_model();
  }

  const LoraWeights& weights() const { return weights_; }
  const AdapterDescription& description() const { return description_; }

 private:
  // True if the adapter changes the module.
  bool PackModule(int64_t layer, Module module, const LoraTensors& names) {
    const std::string full_name = FullModuleName(layer, module);
    const bool target = config_.IsTarget(full_name);
    if (target != names.present()) {
      ThrowInvalidArgument(full_name, target ? "is a target of the adapter, but its tensors are "
                                               "missing"
                                             : "has tensors, but target_modules (or its "
                                               "restrictions) doesn't cover it");
    }
    if (!target) {
      return false;
    }
    const PeftConfig::ModuleSettings settings = config_.SettingsOf(full_name);
    RequireRank(full_name, settings.rank, options_.max_rank);
    weights_.layers[static_cast<size_t>(layer)][static_cast<size_t>(module)] =
        LoadPair(file_, names, settings, ShapeOf(module, model_), options_.dtype);
    description_.max_rank = std::max(description_.max_rank, static_cast<uint32_t>(settings.rank));
    settings_[std::string(ModuleName(module))].insert("r=" + std::to_string(settings.rank) +
                                                      " scale=" + NumberText(settings.scale));
    return true;
  }

  const SafetensorsView& file_;
  const PeftConfig& config_;
  const ModelConfig& model_;
  const PackAdapterOptions& options_;
  LoraWeights weights_;
  AdapterDescription description_;
  std::map<std::string, std::set<std::string>> settings_;
};

}  // namespace

PackedAdapter PackAdapter(const PeftFolder& folder, const ModelConfig& model,
                          const PackAdapterOptions& options) {
  const PeftConfig config = PeftConfig::Parse(RequireFile(folder, kConfigFile));
  const std::string& tensors = RequireFile(folder, kTensorFile);
  RequireHeadUntouched(config);
  const SafetensorsView file =
      SafetensorsView::Parse(std::as_bytes(std::span(tensors)), kTensorFile);
  Packing packing(file, config, model, options);
  packing.Run();
  RequireBase(config, options);
  PackedAdapter result{.content_hash = ContentHash(folder), .description = packing.description()};
  result.file = PackedAdapterFile(result.content_hash, packing.weights());
  result.description.packed_bytes = result.file.size();
  return result;
}

}  // namespace docmem::engine
