#include "engine/artifacts/peft_targets.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/artifacts/number_text.h"

namespace docmem::engine {
namespace {

constexpr const char* kTargetModules = "target_modules";
constexpr const char* kExcludeModules = "exclude_modules";
constexpr const char* kLayersToTransform = "layers_to_transform";
constexpr const char* kLayersPattern = "layers_pattern";
constexpr const char* kAllLinear = "all-linear";
constexpr const char* kLayerGroup = "idx";
constexpr int64_t kMaxLayer = std::numeric_limits<int32_t>::max();

bool EqualsIgnoringCase(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

bool IsString(const JsonFields& config, const char* key) {
  const Json* value = config.Find(key);
  return value != nullptr && value->is_string();
}

std::vector<std::string> StringOrStrings(const JsonFields& config, const char* key) {
  if (IsString(config, key)) {
    return {config.String(key)};
  }
  return config.OptionalStrings(key).value_or(std::vector<std::string>());
}

}  // namespace

std::optional<PeftTargets::NameSet> PeftTargets::NameSet::Parse(const JsonFields& config,
                                                                const char* key) {
  if (!config.Has(key)) {
    return std::nullopt;
  }
  NameSet set;
  if (IsString(config, key)) {
    set.pattern.emplace(config.String(key), NamePattern::Anchor::kWhole, config.Path(key));
  } else {
    set.names = config.Strings(key);
  }
  return set;
}

bool PeftTargets::NameSet::HoldsWhole(const std::string& module) const {
  return pattern ? pattern->Matches(module) : std::ranges::count(names, module) > 0;
}

bool PeftTargets::NameSet::HoldsEnding(const std::string& module) const {
  return std::ranges::any_of(names,
                             [&](const std::string& name) { return module.ends_with("." + name); });
}

PeftTargets PeftTargets::Parse(const JsonFields& config) {
  PeftTargets result;
  if (!config.Has(kTargetModules)) {
    ThrowInvalidArgument(config.Path(kTargetModules), "is missing; name the modules");
  }
  result.all_linear_ = IsString(config, kTargetModules) &&
                       EqualsIgnoringCase(config.String(kTargetModules), kAllLinear);
  if (!result.all_linear_) {
    result.targets_ = *NameSet::Parse(config, kTargetModules);
  }
  result.excluded_ = NameSet::Parse(config, kExcludeModules);
  result.ParseLayers(config);
  return result;
}

void PeftTargets::ParseLayers(const JsonFields& config) {
  const Json* layers = config.Find(kLayersToTransform);
  const std::vector<std::string> patterns = StringOrStrings(config, kLayersPattern);
  if (layers != nullptr && layers->is_number()) {
    layers_ = {config.Int(kLayersToTransform, 0, kMaxLayer)};
  } else if (layers != nullptr) {
    layers_ = config.Ints(kLayersToTransform, 0, kMaxLayer);
  }
  if ((layers != nullptr || !patterns.empty()) && IsString(config, kTargetModules)) {
    ThrowInvalidArgument(config.Path(layers != nullptr ? kLayersToTransform : kLayersPattern),
                         "can't be combined with target_modules that is a string");
  }
  if (layers == nullptr && !patterns.empty()) {
    ThrowInvalidArgument(config.Path(kLayersPattern), "needs layers_to_transform");
  }
  const std::string index = "\\.(?P<idx>\\d+)\\.";
  if (patterns.empty()) {
    layer_patterns_.emplace_back(".*?\\.[^.]*" + index, NamePattern::Anchor::kStart,
                                 config.Path(kLayersPattern));
  }
  for (const std::string& pattern : patterns) {
    layer_patterns_.emplace_back("(?:^|.*?\\.)" + pattern + index, NamePattern::Anchor::kStart,
                                 config.Path(kLayersPattern));
  }
}

bool PeftTargets::IsInLayers(const std::string& module) const {
  if (layers_.empty()) {
    return true;
  }
  for (const NamePattern& pattern : layer_patterns_) {
    if (const auto index = pattern.Group(module, kLayerGroup)) {
      const auto layer = ParseInteger(*index);
      return layer && std::ranges::count(layers_, *layer) > 0;
    }
  }
  return false;
}

bool PeftTargets::Contains(const std::string& module) const {
  if (excluded_ && (excluded_->HoldsWhole(module) || excluded_->HoldsEnding(module))) {
    return false;
  }
  if (all_linear_) {
    return module.find(".layers.") != std::string::npos;
  }
  if (targets_.HoldsWhole(module)) {
    return true;
  }
  return targets_.HoldsEnding(module) && IsInLayers(module);
}

}  // namespace docmem::engine
