#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>

#include "engine/text/prompt_format.h"
#include "engine/text/tokenizer.h"

namespace docmem::engine {

/// "cpu", "cuda" or "cuda:N". Throws `kInvalidArgument` for anything else or a GPU that isn't
/// there, `kFailedPrecondition` for a GPU where the program was built without CUDA.
at::Device ParseDevice(const std::string& name);

/// What a model computes in.
struct ComputeType {
  std::string name;  ///< "float32", "bfloat16" or "int8"; part of the model's identity
  at::ScalarType dtype = at::kFloat;  ///< of activations, keys, values and adapters
  bool int8_weights = false;
};

/// "float32", "bfloat16", "int8" (weights as int8 per output channel, all else bf16), or "auto":
/// bf16 on a GPU and on CPUs that compute it natively, else fp32. Throws `kInvalidArgument`;
/// `kUnimplemented` for int8 on a GPU.
ComputeType ResolveDtype(const std::string& name, at::Device device);

/// "float32" or "bfloat16".
std::string DtypeName(at::ScalarType dtype);

/// Intra-operator threads of the whole process; 0: all cores. Throws `kInvalidArgument`.
void SetThreads(int threads);

/// A built-in format's name, the path of a JSON file, or empty: chosen from the model's own chat
/// template (`chat_template.jinja` or `tokenizer_config.json`). Throws as `PromptFormat`'s
/// factories.
PromptFormat LoadPromptFormat(const std::string& name_or_path,
                              const std::filesystem::path& model_dir, const Tokenizer& tokenizer);

}  // namespace docmem::engine
