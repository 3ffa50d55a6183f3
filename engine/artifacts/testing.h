#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/artifacts/adapter.h"
#include "engine/artifacts/cache.h"
#include "engine/artifacts/shared_bytes.h"
#include "engine/formats/error.h"

namespace docmem::engine::testing {

struct CacheShape {
  int64_t layers = 2;
  int64_t kv_heads = 3;
  int64_t dim = 8;
  int64_t head_tokens = 2;
  int64_t context_tokens = 40;
  std::vector<int64_t> kept = {5};  ///< rows per (layer, head); one number stands for all
  at::ScalarType dtype = at::kFloat;
};

/// A cache of random rows; equal arguments give equal rows.
Cache RandomCache(const CacheShape& shape, uint64_t seed = 1);

CacheIdentity SomeIdentity(const CacheShape& shape);

std::string FileOf(const Cache& cache);
SharedBytes Share(std::string bytes);

/// A LoRA folder as PEFT writes it, for changing at will.
struct PeftFiles {
  std::string config;                         ///< JSON
  std::map<std::string, at::Tensor> tensors;  ///< by name in the file

  PeftFolder Folder() const;
};

/// Random A and B for the modules in `modules` ("self_attn.q_proj") of all layers, rank r.
PeftFiles SomeAdapter(const ModelConfig& model, const std::vector<std::string>& modules, int64_t r);

/// A model of 2 layers, hidden 16, 4 query and 2 KV heads of 4, intermediate 24.
ModelConfig SmallModel();

std::string Safetensors(const std::map<std::string, at::Tensor>& tensors);

}  // namespace docmem::engine::testing
