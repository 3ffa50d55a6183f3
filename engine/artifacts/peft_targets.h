#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/artifacts/name_pattern.h"
#include "engine/formats/json_fields.h"

namespace docmem::engine {

/// Which modules an adapter changes: `target_modules` (list of endings, regular expression, or
/// "all-linear"), `exclude_modules`, `layers_to_transform` and `layers_pattern`, with PEFT's rules.
/// Immutable, thread-safe.
class PeftTargets {
 public:
  /// Throws `kInvalidArgument` naming the key.
  static PeftTargets Parse(const JsonFields& config);

  /// `module` is a full name such as "model.layers.3.self_attn.q_proj". Throws as
  /// `NamePattern::Matches`.
  bool Contains(const std::string& module) const;

 private:
  /// A list of names and endings of names, or one regular expression.
  struct NameSet {
    std::vector<std::string> names;
    std::optional<NamePattern> pattern;

    static std::optional<NameSet> Parse(const JsonFields& config, const char* key);
    bool HoldsWhole(const std::string& module) const;
    bool HoldsEnding(const std::string& module) const;
  };

  void ParseLayers(const JsonFields& config);
  bool IsInLayers(const std::string& module) const;

  bool all_linear_ = false;
  NameSet targets_;
  std::optional<NameSet> excluded_;
  std::vector<int64_t> layers_;              // empty: all
  std::vector<NamePattern> layer_patterns_;  // each with a group "idx"
};

}  // namespace docmem::engine
