#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/artifacts/name_pattern.h"
#include "engine/artifacts/peft_targets.h"

namespace docmem::engine {

/// What DocMem understands of a PEFT `adapter_config.json`. Everything that would change the
/// computation otherwise has been refused. Immutable after parsing.
class PeftConfig {
 public:
  /// Throws `kUnimplemented` naming the key for features that aren't supported and for unknown keys
  /// that aren't at a neutral value, `kInvalidArgument` for malformed ones.
  static PeftConfig Parse(std::string_view adapter_config_json);

  struct ModuleSettings {
    int64_t rank = 0;
    double scale = 0.0;  ///< alpha/r, or alpha/√r with rsLoRA
  };

  /// `module` is a full name such as "model.layers.3.self_attn.q_proj".
  bool IsTarget(const std::string& module) const { return targets_.Contains(module); }
  ModuleSettings SettingsOf(const std::string& module) const;

  /// Empty when the file names none.
  const std::string& base_model() const { return base_model_; }

 private:
  explicit PeftConfig(PeftTargets targets) : targets_(std::move(targets)) {}

  PeftTargets targets_;
  std::string base_model_;
  int64_t rank_ = 0;
  double alpha_ = 0.0;
  bool rslora_ = false;
  std::vector<std::pair<NamePattern, int64_t>> rank_patterns_;  // in the file's order
  std::vector<std::pair<NamePattern, double>> alpha_patterns_;
};

}  // namespace docmem::engine
