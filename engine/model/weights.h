#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/model/lora.h"
#include "engine/model/model_config.h"

namespace docmem::engine {

struct LayerWeights {
  at::Tensor input_norm;                        ///< [hidden]
  at::Tensor post_attention_norm;               ///< [hidden]
  at::Tensor q_norm;                            ///< [D], only with `qk_norm`
  at::Tensor k_norm;                            ///< [D], only with `qk_norm`
  std::array<at::Tensor, kModuleCount> matrix;  ///< [out, in] each, see `ShapeOf`
  std::array<at::Tensor, kModuleCount> bias;    ///< [out], undefined where the model has none
};

/// All parameters in one dtype on one device. Read-only: on the CPU, tensors whose dtype in the
/// file is the compute dtype alias the memory-mapped file, which they keep open; the rest are
/// converted copies.
struct Weights {
  at::Tensor embedding;   ///< [V, hidden]
  at::Tensor final_norm;  ///< [hidden]
  at::Tensor head;        ///< [V, hidden]; the embedding itself when tied
  std::vector<LayerWeights> layers;

  /// Bytes of what isn't mapped from a file.
  uint64_t owned_bytes = 0;

  /// Numbers in all distinct tensors.
  uint64_t count() const;
};

struct LoadWeightsOptions {
  at::ScalarType dtype = at::kFloat;  ///< compute dtype: fp32 or bf16
  at::Device device = at::kCPU;
  std::function<void(double)> progress;  ///< 0 … 1, may be empty; on the calling thread
};

/// Reads `model.safetensors`, or the shards that `model.safetensors.index.json` names. Throws
/// `kNotFound` without either; `kInvalidArgument` naming the shard (and the bytes it lacks) or the
/// tensor: missing, in two shards, of another shape, not in the index's shard, untied head absent,
/// tied head that differs from the embedding; `kUnimplemented` for dtypes other than fp32, fp16,
/// bf16 (quantised weights) and tensors the model doesn't have.
Weights LoadWeights(const std::filesystem::path& model_dir, const ModelConfig& config,
                    const LoadWeightsOptions& options);

/// SHA-256 (hex) over name, dtype, shape and XXH3-128 of the bytes of every tensor in the files, in
/// name order: how they are spread over shards doesn't matter. All bytes are read once; `memo_file`
/// (empty: none) remembers the result by path, size, modification and change time of the shards,
/// and is rewritten when it doesn't know them. A memo that can't be read or written is ignored.
/// Throws as `LoadWeights` for damaged files.
std::string WeightsDigest(const std::filesystem::path& model_dir,
                          const std::filesystem::path& memo_file);

}  // namespace docmem::engine
