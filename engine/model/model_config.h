#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace docmem::engine {

enum class Family { kLlama, kQwen3 };

enum class RopeType { kDefault, kLinear, kLlama3, kYarn };

/// Rotary position embedding, resolved from either spelling (`rope_theta` + `rope_scaling`, or
/// `rope_parameters`). Fields that a type doesn't use keep their defaults.
struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 0.0;
  double factor = 1.0;                 ///< linear, llama3, yarn
  double low_freq_factor = 1.0;        ///< llama3
  double high_freq_factor = 4.0;       ///< llama3
  int64_t original_max_positions = 0;  ///< llama3, yarn
  double beta_fast = 32.0;             ///< yarn
  double beta_slow = 1.0;              ///< yarn
  double attention_factor = 1.0;       ///< yarn; multiplies cosine and sine
  bool truncate = true;                ///< yarn

  bool operator==(const RopeConfig&) const = default;
};

/// A model's resolved configuration. Parsed once, const afterwards.
struct ModelConfig {
  Family family = Family::kLlama;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layers = 0;
  int64_t query_heads = 0;  ///< H
  int64_t kv_heads = 0;     ///< G; H is a multiple of it
  int64_t head_dim = 0;     ///< D
  double rms_norm_eps = 0.0;
  bool attention_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;  ///< Qwen3: RMS norm of q and k per head, before RoPE
  bool tie_word_embeddings = false;
  int64_t max_positions = 0;
  RopeConfig rope;
  std::vector<int32_t> eos_ids;  ///< of config and generation config together, sorted
  std::string name;              ///< `_name_or_path` where set, else the folder's name

  /// Reads `config.json` and, where it is, `generation_config.json`. What isn't understood
  /// (another family, RoPE type, activation, sliding window in use, quantised weights) is refused
  /// with `kUnimplemented` and the field's name; malformed or missing fields with
  /// `kInvalidArgument`; disagreeing spellings of one setting too.
  static ModelConfig Load(const std::filesystem::path& model_dir);
  static ModelConfig Parse(std::string_view config_json, std::string_view generation_config_json);

  /// SHA-256 over the resolved fields that change what a KV row is, and `dtype`; hex.
  std::string Digest(std::string_view dtype) const;
};

}  // namespace docmem::engine
