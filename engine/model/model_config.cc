#include "engine/model/model_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/formats/digest.h"
#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"
#include "engine/model/rope_config.h"

namespace docmem::engine {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeads = 1024;
constexpr int64_t kMaxPositions = int64_t{1} << 31;

Family ParseFamily(const JsonFields& config) {
  const std::string type = config.String("model_type");
  if (type != "llama" && type != "qwen3") {
    ThrowUnimplemented(config.Path("model_type"), "\"" + type + "\" isn't one of llama, qwen3");
  }
  const Family family = type == "llama" ? Family::kLlama : Family::kQwen3;
  const std::string expected = family == Family::kLlama ? "LlamaForCausalLM" : "Qwen3ForCausalLM";
  for (const std::string& name :
       config.OptionalStrings("architectures").value_or(std::vector<std::string>{})) {
    if (name != expected) {
      ThrowUnimplemented(config.Path("architectures"), "\"" + name + "\" isn't " + expected);
    }
  }
  return family;
}

void RequireFullAttention(const JsonFields& config, Family family) {
  const bool window = config.OptionalInt("sliding_window", 0, kMaxPositions).has_value();
  const bool in_use =
      config.OptionalBool("use_sliding_window").value_or(window && family == Family::kLlama);
  if (in_use) {
    ThrowUnimplemented(config.Path("sliding_window"), "sliding-window attention isn't supported");
  }
  for (const std::string& type :
       config.OptionalStrings("layer_types").value_or(std::vector<std::string>{})) {
    if (type != "full_attention") {
      ThrowUnimplemented(config.Path("layer_types"), "\"" + type + "\" isn't full_attention");
    }
  }
}

void RequireUnderstood(const JsonFields& config, Family family) {
  if (config.Has("quantization_config")) {
    ThrowUnimplemented(config.Path("quantization_config"),
                       "quantised weights aren't supported; use the bf16 or fp32 model");
  }
  const std::string activation = config.OptionalString("hidden_act").value_or("silu");
  if (activation != "silu") {
    ThrowUnimplemented(config.Path("hidden_act"), "\"" + activation + "\" isn't silu");
  }
  RequireFullAttention(config, family);
}

void ParseHeads(const JsonFields& config, ModelConfig* model) {
  model->query_heads = config.Int("num_attention_heads", 1, kMaxHeads);
  const auto kv_heads = config.OptionalInt("num_key_value_heads", 1, kMaxHeads);
  if (!kv_heads && model->family == Family::kQwen3) config.Value("num_key_value_heads");
  model->kv_heads = kv_heads.value_or(model->query_heads);
  if (model->query_heads % model->kv_heads != 0) {
    ThrowInvalidArgument(config.Path("num_key_value_heads"),
                         std::to_string(model->kv_heads) + " doesn't divide num_attention_heads " +
                             std::to_string(model->query_heads));
  }
  const auto head_dim = config.OptionalInt("head_dim", 1, kMaxSize);
  if (!head_dim && model->family == Family::kQwen3) config.Value("head_dim");
  if (!head_dim && model->hidden_size % model->query_heads != 0) {
    ThrowInvalidArgument(config.Path("head_dim"),
                         "is missing, and num_attention_heads doesn't divide hidden_size");
  }
  model->head_dim = head_dim.value_or(model->hidden_size / model->query_heads);
  if (model->head_dim % 2 != 0) {
    ThrowInvalidArgument(config.Path("head_dim"),
                         "must be even, is " + std::to_string(model->head_dim));
  }
}

void AddEosIds(const JsonFields& fields, int64_t vocab_size, std::vector<int32_t>* ids) {
  const Json* value = fields.Find("eos_token_id");
  if (value == nullptr) return;
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(vocab_size)) {
      ThrowInvalidArgument(fields.Path("eos_token_id"),
                           "must be token ids below vocab_size " + std::to_string(vocab_size));
    }
    ids->push_back(id.get<int32_t>());
  }
}

std::vector<int32_t> ParseEosIds(const JsonFields& config, std::string_view generation_config_json,
                                 int64_t vocab_size) {
  std::vector<int32_t> ids;
  AddEosIds(config, vocab_size, &ids);
  if (!generation_config_json.empty()) {
    const Json generation = ParseJson(generation_config_json, "generation_config.json");
    AddEosIds(JsonFields(generation, "generation_config.json"), vocab_size, &ids);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::string_view RopeTypeName(RopeType type) {
  switch (type) {
    case RopeType::kDefault:
      return "default";
    case RopeType::kLinear:
      return "linear";
    case RopeType::kLlama3:
      return "llama3";
    case RopeType::kYarn:
      return "yarn";
  }
  return "";
}

}  // namespace

ModelConfig ModelConfig::Parse(std::string_view config_json,
                               std::string_view generation_config_json) {
  const Json json = ParseJson(config_json, "config.json");
  const JsonFields config(json, "config.json");
  ModelConfig model;
  model.family = ParseFamily(config);
  RequireUnderstood(config, model.family);
  model.vocab_size = config.Int("vocab_size", 1, kMaxSize);
  model.hidden_size = config.Int("hidden_size", 1, kMaxSize);
  model.intermediate_size = config.Int("intermediate_size", 1, kMaxSize);
  model.layers = config.Int("num_hidden_layers", 1, kMaxLayers);
  ParseHeads(config, &model);
  model.rms_norm_eps = config.Number("rms_norm_eps");
  if (!(model.rms_norm_eps > 0.0)) {
    ThrowInvalidArgument(config.Path("rms_norm_eps"), "must be above 0");
  }
  model.attention_bias = config.OptionalBool("attention_bias").value_or(false);
  model.mlp_bias =
      model.family == Family::kLlama && config.OptionalBool("mlp_bias").value_or(false);
  model.qk_norm = model.family == Family::kQwen3;
  model.tie_word_embeddings = config.OptionalBool("tie_word_embeddings").value_or(false);
  model.max_positions = config.Int("max_position_embeddings", 1, kMaxPositions);
  model.rope = ParseRopeConfig(config, model.max_positions);
  model.eos_ids = ParseEosIds(config, generation_config_json, model.vocab_size);
  model.name = config.OptionalString("_name_or_path").value_or("");
  return model;
}

ModelConfig ModelConfig::Load(const std::filesystem::path& model_dir) {
  const MappedFile config = MappedFile::Open(model_dir / "config.json");
  const std::filesystem::path generation_path = model_dir / "generation_config.json";
  std::optional<MappedFile> generation;
  if (std::filesystem::exists(generation_path)) generation = MappedFile::Open(generation_path);
  ModelConfig model = Parse(config.text(), generation ? generation->text() : std::string_view());
  if (model.name.empty()) {
    model.name = std::filesystem::weakly_canonical(model_dir).filename().string();
  }
  return model;
}

std::string ModelConfig::Digest(std::string_view dtype) const {
  const Json fields = {
      {"family", family == Family::kLlama ? "llama" : "qwen3"},
      {"dtype", std::string(dtype)},
      {"hidden_size", hidden_size},
      {"intermediate_size", intermediate_size},
      {"layers", layers},
      {"query_heads", query_heads},
      {"kv_heads", kv_heads},
      {"head_dim", head_dim},
      {"rms_norm_eps", rms_norm_eps},
      {"attention_bias", attention_bias},
      {"mlp_bias", mlp_bias},
      {"qk_norm", qk_norm},
      {"rope_type", std::string(RopeTypeName(rope.type))},
      {"rope_theta", rope.theta},
      {"rope_factor", rope.factor},
      {"rope_low_freq_factor", rope.low_freq_factor},
      {"rope_high_freq_factor", rope.high_freq_factor},
      {"rope_original_max_positions", rope.original_max_positions},
      {"rope_beta_fast", rope.beta_fast},
      {"rope_beta_slow", rope.beta_slow},
      {"rope_attention_factor", rope.attention_factor},
      {"rope_truncate", rope.truncate},
  };
  return Sha256Hex(fields.dump());
}

}  // namespace docmem::engine
