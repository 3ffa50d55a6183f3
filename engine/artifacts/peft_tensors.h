#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/safetensors.h"
#include "engine/model/lora.h"
#include "engine/model/model_config.h"

namespace docmem::engine {

/// Which tensor of which module a name in an adapter file stands for.
struct LoraTensorName {
  int64_t layer = 0;
  Module module = Module::kQ;
  bool is_b = false;
};

/// Reads a name such as "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight": with or
/// without PEFT's and the models' known prefixes, also repeated ones. Nothing for any other name.
std::optional<LoraTensorName> ParseLoraTensorName(std::string_view name);

/// "model.layers.3.self_attn.q_proj": the name that PEFT's patterns are applied to.
std::string FullModuleName(int64_t layer, Module module);

/// The two tensors of one module in an adapter file; both or none are set.
struct LoraTensors {
  std::string a_name;
  std::string b_name;

  bool present() const { return !a_name.empty() || !b_name.empty(); }
};

/// One entry per layer of the model and module.
using LoraTensorTable = std::vector<std::array<LoraTensors, kModuleCount>>;

/// Sorts all tensors of the file. Throws `kUnimplemented` with the names for tensors of features
/// that aren't supported (DoRA, biases, saved modules, embeddings, output head), `kInvalidArgument`
/// for names that match nothing (the first of them listed), come twice, lack their other half, lie
/// beyond the model's layers, or when no tensor is there at all.
LoraTensorTable SortLoraTensors(const SafetensorsView& file, const ModelConfig& model);

}  // namespace docmem::engine
