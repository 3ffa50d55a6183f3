#include "engine/artifacts/peft_config.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/artifacts/peft_keys.h"
#include "engine/formats/json_fields.h"

namespace docmem::engine {
namespace {

constexpr const char* kFile = "adapter_config.json";
constexpr int64_t kDefaultRank = 8;
constexpr double kDefaultAlpha = 8.0;
constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxPatterns = 2048;
constexpr JsonLimits kLimits = {.max_bytes = 1U << 20, .max_depth = 16};

// The keys of an object in the order of the file, in which PEFT tries them.
std::vector<std::string> KeysInOrder(std::string_view text, const char* object) {
  const auto ordered = nlohmann::ordered_json::parse(text);
  std::vector<std::string> keys;
  for (const auto& [key, value] : ordered.at(object).items()) {
    keys.push_back(key);
  }
  return keys;
}

// PEFT searches the key as an ending of the module's name.
template <typename Read>
auto Patterns(const JsonFields& config, std::string_view text, const char* key, Read read) {
  std::vector<std::pair<NamePattern, decltype(read(config, ""))>> result;
  const auto object = config.OptionalObject(key);
  if (!object || object->json().empty()) {
    return result;
  }
  if (object->json().size() > kMaxPatterns) {
    ThrowInvalidArgument(config.Path(key), "has " + std::to_string(object->json().size()) +
                                               " entries, at most " + std::to_string(kMaxPatterns) +
                                               " are allowed");
  }
  for (const std::string& name : KeysInOrder(text, key)) {
    result.emplace_back(
        NamePattern("(.*\\.)?(" + name + ")$", NamePattern::Anchor::kStart, object->Path(name)),
        read(*object, name));
  }
  return result;
}

template <typename Value>
Value FirstMatch(const std::vector<std::pair<NamePattern, Value>>& patterns,
                 const std::string& module, Value otherwise) {
  for (const auto& [pattern, value] : patterns) {
    if (pattern.Matches(module)) {
      return value;
    }
  }
  return otherwise;
}

}  // namespace

PeftConfig PeftConfig::Parse(std::string_view adapter_config_json) {
  const Json json = ParseJson(adapter_config_json, kFile, kLimits);
  const JsonFields fields(json, kFile);
  RequireSupportedKeys(fields);
  PeftConfig config(PeftTargets::Parse(fields));
  config.base_model_ = fields.OptionalString("base_model_name_or_path").value_or("");
  config.rank_ = fields.OptionalInt("r", 1, kMaxInt).value_or(kDefaultRank);
  config.alpha_ = fields.OptionalNumber("lora_alpha").value_or(kDefaultAlpha);
  config.rslora_ = fields.OptionalBool("use_rslora").value_or(false);
  config.rank_patterns_ = Patterns(
      fields, adapter_config_json, "rank_pattern",
      [](const JsonFields& object, const std::string& key) { return object.Int(key, 1, kMaxInt); });
  config.alpha_patterns_ =
      Patterns(fields, adapter_config_json, "alpha_pattern",
               [](const JsonFields& object, const std::string& key) { return object.Number(key); });
  return config;
}

PeftConfig::ModuleSettings PeftConfig::SettingsOf(const std::string& module) const {
  const int64_t rank = FirstMatch(rank_patterns_, module, rank_);
  const double alpha = FirstMatch(alpha_patterns_, module, alpha_);
  const auto divisor = static_cast<double>(rank);
  return {.rank = rank, .scale = alpha / (rslora_ ? std::sqrt(divisor) : divisor)};
}

}  // namespace docmem::engine
