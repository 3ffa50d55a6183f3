#include "training/peft_folder.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/artifacts/tensor_bytes.h"
#include "engine/formats/safetensors.h"

namespace docmem::training {
namespace {

std::string TensorName(size_t layer, engine::Module module, const char* matrix) {
  const char* block = module < engine::Module::kGate ? ".self_attn." : ".mlp.";
  return "base_model.model.model.layers." + std::to_string(layer) + block +
         std::string(engine::ModuleName(module)) + ".lora_" + matrix + ".weight";
}

std::string Config(const TrainingOptions& options, const std::string& base_model) {
  std::set<std::string> modules;
  for (const engine::Module module : options.modules) {
    modules.emplace(engine::ModuleName(module));
  }
  const nlohmann::json config = {{"peft_type", "LORA"},
                                 {"task_type", "CAUSAL_LM"},
                                 {"base_model_name_or_path", base_model},
                                 {"inference_mode", true},
                                 {"r", options.rank},
                                 {"lora_alpha", options.alpha},
                                 {"lora_dropout", options.dropout},
                                 {"use_rslora", options.rank_stabilised},
                                 {"target_modules", modules},
                                 {"bias", "none"}};
  return config.dump(2) + "\n";
}

}  // namespace

engine::PeftFolder MakePeftFolder(const engine::LoraWeights& weights,
                                  const TrainingOptions& options, const std::string& base_model) {
  std::vector<engine::TensorSource> sections;
  for (size_t layer = 0; layer < weights.layers.size(); ++layer) {
    for (int index = 0; index < engine::kModuleCount; ++index) {
      const engine::LoraPair& pair = weights.layers[layer][static_cast<size_t>(index)];
      if (!pair.defined()) continue;
      const auto module = static_cast<engine::Module>(index);
      sections.push_back(engine::SectionOf(TensorName(layer, module, "A"), pair.a));
      sections.push_back(engine::SectionOf(TensorName(layer, module, "B"), pair.b));
    }
  }
  std::string file;
  engine::WriteSafetensors(sections, {{"format", "pt"}}, [&](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return {{"adapter_config.json", Config(options, base_model)},
          {"adapter_model.safetensors", std::move(file)}};
}

}  // namespace docmem::training
