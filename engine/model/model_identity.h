#pragma once

#include <string>

namespace docmem::engine {

/// What a running model is, as far as a stored cache depends on it. Two models with equal
/// identities compute the same KV rows for the same token ids. All digests are lower-case hex.
struct ModelIdentity {
  /// Over names, dtypes, shapes and bytes of all weight tensors in name order.
  std::string weights_digest;
  /// Over the resolved configuration: what `ModelConfig` holds and the compute dtype, not the
  /// spelling of `config.json`.
  std::string config_digest;
  /// SHA-256 of `tokenizer.json`.
  std::string tokenizer_digest;
  /// What the model computes in: "float32", "bfloat16" or "int8" (bf16 with int8 weights); never
  /// "auto".
  std::string dtype;

  bool operator==(const ModelIdentity&) const = default;
};

}  // namespace docmem::engine
