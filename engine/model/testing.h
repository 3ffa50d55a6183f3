#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "engine/formats/error.h"
#include "engine/model/lora.h"
#include "engine/model/transformer.h"

/// What tests and benches of several folders need around a model; not part of the engine.
namespace docmem::engine::testing {

/// A file or folder below `tests/reference`.
std::filesystem::path Reference(const std::string& relative);

/// Folder of SmolLM2-135M-Instruct (environment variable `DOCMEM_SMOLLM2`). Nothing where it hasn't
/// been made, and in the TSan preset: real weights take hours there, and the tiny models run
/// through the same code.
std::optional<std::filesystem::path> SmolLm2();
inline constexpr char kNoSmolLm2[] =
    "DOCMEM_SMOLLM2 names no model folder (./dev test makes one), or this is TSan";

Transformer LoadModel(const std::filesystem::path& model_dir, at::ScalarType dtype = at::kFloat);

/// All tensors of a safetensors file, as copies.
std::map<std::string, at::Tensor> LoadTensors(const std::filesystem::path& file);

/// Writes CPU tensors as a safetensors file.
void SaveTensors(const std::filesystem::path& file,
                 const std::map<std::string, at::Tensor>& tensors);

/// A folder with `config.json` and random weights of small norm for it: matrices normal with std
/// 1/√in, norm weights and biases near 1 and 0.
void MakeModel(const std::filesystem::path& model_dir, const std::string& config_json,
               at::ScalarType dtype, uint64_t seed);

/// Logits [T, V] of one whole prompt under causal attention over all its rows.
at::Tensor CausalLogits(const Transformer& model, const at::Tensor& ids,
                        const at::Tensor& positions, std::span<const AdapterSpan> adapters = {});
at::Tensor CausalLogits(const Transformer& model, const at::Tensor& ids,
                        std::span<const AdapterSpan> adapters = {});

/// Random adapter over `modules` of every layer; large enough to move the logits.
LoraWeights RandomLora(const ModelConfig& config, std::span<const Module> modules, int64_t rank,
                       at::ScalarType dtype, uint64_t seed);

/// The error that `action` throws, nothing when it returns.
std::optional<Error> ErrorOf(const std::function<void()>& action);

/// max |a − b| in fp32.
double MaxDifference(const at::Tensor& a, const at::Tensor& b);

/// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace docmem::engine::testing
