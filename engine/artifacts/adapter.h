#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "engine/artifacts/shared_bytes.h"
#include "engine/model/lora.h"
#include "engine/model/model_config.h"

namespace docmem::engine {

/// What an accepted adapter does, for people and for the registry.
struct AdapterDescription {
  uint32_t max_rank = 0;
  /// Per module name ("q_proj"): ranks and scales that occur, e.g. "r=8 scale=2".
  std::map<std::string, std::string> modules;
  uint32_t layers_changed = 0;
  std::string base_model;     ///< `base_model_name_or_path` as uploaded
  uint64_t packed_bytes = 0;  ///< length of the packed file
};

/// One loaded adapter. Const after construction; shared by questions and threads.
class Adapter {
 public:
  Adapter(std::string content_hash, LoraWeights weights);

  /// SHA-256 that names the adapter, see `PackedAdapter`.
  const std::string& content_hash() const { return content_hash_; }
  const LoraWeights& weights() const { return weights_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::string content_hash_;
  LoraWeights weights_;
  uint64_t bytes_ = 0;
};

/// The files of a PEFT folder by name, e.g. "adapter_config.json".
using PeftFolder = std::map<std::string, std::string>;

struct PackAdapterOptions {
  uint32_t max_rank = 256;
  /// Accept an adapter whose `base_model_name_or_path` names another model than `model_name`.
  bool allow_other_base = false;
  std::string model_name;
  at::ScalarType dtype = at::kFloat;  ///< compute dtype of the packed form
};

struct PackedAdapter {
  std::string content_hash;  ///< SHA-256 over the folder's file names and bytes
  std::string file;          ///< packed form: safetensors in the compute dtype, checksummed
  AdapterDescription description;
};

/// Checks a PEFT LoRA folder against the model and packs it; what is accepted and refused:
/// docs/formats.md, "Adapters". Throws `kUnimplemented` for PEFT features that aren't supported,
/// `kInvalidArgument` for malformed or over-limit files, each naming the reason and the key or
/// tensor. Pickled files are never opened.
PackedAdapter PackAdapter(const PeftFolder& folder, const ModelConfig& model,
                          const PackAdapterOptions& options);

/// Decodes a packed file; tensors alias `file` on the CPU. Throws `kDataLoss` when it is damaged,
/// `kFailedPrecondition` when it was packed for other shapes or another dtype.
std::shared_ptr<const Adapter> ReadPackedAdapter(SharedBytes file, const ModelConfig& model,
                                                 at::ScalarType dtype, at::Device device);

}  // namespace docmem::engine
