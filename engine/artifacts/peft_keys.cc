#include "engine/artifacts/peft_keys.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace docmem::engine {
namespace {

// Read as settings, here or in PeftConfig and PeftTargets.
constexpr std::array<std::string_view, 15> kSettings = {"alpha_pattern",
                                                        "base_model_name_or_path",
                                                        "bias",
                                                        "exclude_modules",
                                                        "init_lora_weights",
                                                        "layers_pattern",
                                                        "layers_to_transform",
                                                        "lora_alpha",
                                                        "peft_type",
                                                        "r",
                                                        "rank_pattern",
                                                        "target_modules",
                                                        "task_type",
                                                        "use_rslora",
                                                        "fan_in_fan_out"};

// Don't change what a trained adapter computes, whatever their value.
constexpr std::array<std::string_view, 9> kHarmless = {
    "auto_mapping", "eva_config", "inference_mode",    "lora_dropout",  "megatron_core",
    "peft_version", "revision",   "qalora_group_size", "runtime_config"};

struct Refusal {
  std::string_view key;
  const char* reason;
};

constexpr std::array<Refusal, 22> kRefused = {{
    {"alora_invocation_tokens", "adapters that switch on inside a prompt aren't supported"},
    {"arrow_config", "routing between adapters isn't supported"},
    {"corda_config", "CorDA changes the base model's weights; convert to a plain LoRA on saving"},
    {"ensure_weight_tying", "adapters of tied embeddings aren't supported"},
    {"kasa_config", "KaSA isn't supported"},
    {"layer_replication", "replicated layers aren't supported"},
    {"loftq_config", "LoftQ changes the base model's weights"},
    {"lora_bias", "biases beside the LoRA matrices aren't supported"},
    {"lora_ga_config",
     "LoRA-GA changes the base model's weights; convert to a plain LoRA on saving"},
    {"megatron_config", "Megatron's parallel layers aren't supported"},
    {"modules_to_save", "fully trained modules beside the LoRA matrices aren't supported"},
    {"monteclora_config", "MonteCLoRA isn't supported"},
    {"target_parameters", "adapters on bare parameters aren't supported"},
    {"trainable_token_indices", "trained token embeddings aren't supported"},
    {"use_bdlora", "BD-LoRA isn't supported"},
    {"use_dora", "DoRA isn't supported"},
    {"use_gks", "routing between adapters isn't supported"},
    {"use_qalora", "QALoRA isn't supported"},
    {"velora_config", "VeLoRA isn't supported"},
    {"gks_adapter_names", "routing between adapters isn't supported"},
    {"task_adapter_names", "routing between adapters isn't supported"},
    {"lora_magnitude_vector", "DoRA isn't supported"},
}};

// Initialisations after which the base model is the original one.
constexpr std::array<std::string_view, 3> kInitialisations = {"gaussian", "eva", "orthogonal"};

bool IsNeutral(const Json& value) {
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

template <typename Range>
bool Holds(const Range& range, std::string_view key) {
  return std::find(range.begin(), range.end(), key) != range.end();
}

void RequireNeutral(const JsonFields& config, const std::string& key, const Json& value) {
  if (Holds(kSettings, key) || Holds(kHarmless, key) || IsNeutral(value)) {
    return;
  }
  const auto known = std::ranges::find(kRefused, std::string_view(key), &Refusal::key);
  ThrowUnimplemented(config.Path(key),
                     known != kRefused.end()
                         ? known->reason
                         : "isn't known here and may change what the adapter computes; remove it "
                           "if it doesn't");
}

void RequirePeftType(const JsonFields& config) {
  const std::string type = config.String("peft_type");
  if (type != "LORA") {
    ThrowUnimplemented(config.Path("peft_type"),
                       "\"" + type.substr(0, 40) + "\" isn't supported, only LORA is");
  }
}

void RequireTaskType(const JsonFields& config) {
  const auto type = config.OptionalString("task_type");
  if (type && *type != "CAUSAL_LM") {
    ThrowUnimplemented(config.Path("task_type"),
                       "\"" + type->substr(0, 40) + "\" isn't supported, only CAUSAL_LM is");
  }
}

void RequireNoBias(const JsonFields& config) {
  const auto bias = config.OptionalString("bias");
  if (bias && *bias != "none") {
    ThrowUnimplemented(config.Path("bias"),
                       "\"" + bias->substr(0, 40) + "\": trained biases aren't supported");
  }
}

void RequireOriginalBase(const JsonFields& config) {
  const Json* init = config.Find("init_lora_weights");
  if (init == nullptr || init->is_boolean()) {
    return;
  }
  const std::string name = config.String("init_lora_weights");
  if (!Holds(kInitialisations, name)) {
    ThrowUnimplemented(config.Path("init_lora_weights"),
                       "\"" + name.substr(0, 40) +
                           "\" may change the base model's weights, so the adapter would be wrong "
                           "on the original ones; convert to a plain LoRA on saving");
  }
}

}  // namespace

void RequireSupportedKeys(const JsonFields& config) {
  RequirePeftType(config);
  for (const auto& [key, value] : config.json().items()) {
    RequireNeutral(config, key, value);
  }
  RequireTaskType(config);
  RequireNoBias(config);
  RequireOriginalBase(config);
  if (config.OptionalBool("fan_in_fan_out").value_or(false)) {
    ThrowUnimplemented(config.Path("fan_in_fan_out"), "transposed weights aren't supported");
  }
}

}  // namespace docmem::engine
