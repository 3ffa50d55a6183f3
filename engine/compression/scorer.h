#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compression/profile.h"
#include "engine/compression/selection.h"
#include "engine/compression/sketch.h"
#include "engine/model/model_config.h"

namespace docmem::engine {

/// Consecutive rows of one layer, in the compute dtype. Views; valid during the call.
struct ScorerRows {
  int64_t first_row = 0;     ///< position of the first of the T rows
  at::Tensor queries;        ///< [T, H, D] after RoPE
  at::Tensor pre_rope_keys;  ///< [T, G, D] after the k-norm where there is one
  at::Tensor keys;           ///< [G, first_row + T, D] after RoPE: all rows of the layer so far
  at::Tensor values;         ///< [G, first_row + T, D]
};

/// What a scorer is made for: all compressions of one context that share profile and seed.
struct ScorerOptions {
  Profile profile = Profile::kCompactor;
  int64_t context_tokens = 0;  ///< S
  int64_t head_tokens = 0;
  at::ScalarType dtype = at::kFloat;  ///< of the rows it will get
  at::Device device = at::kCPU;
  SketchSource sketch;  ///< null: the profile's own numbers from `seed`
  uint64_t seed = 0;
};

/// Scores the tokens of a context, layer after layer; higher is better. Gets the rows of a layer in
/// order and in pieces, so that no layer's queries ever exist as a whole. Used from the thread that
/// runs tensor work.
class Scorer {
 public:
  virtual ~Scorer() = default;

  /// The next rows of the current layer.
  virtual void Add(const ScorerRows& rows) = 0;

  /// After all S rows of `layer`: scores [G, M] fp32 of the middle, one tensor per entry of
  /// `blends` (the compressions' `blend`); the next `Add` begins the next layer. Throws `kInternal`
  /// naming the layer when the numbers aren't finite or can't be factorised.
  virtual std::vector<at::Tensor> Finish(int64_t layer, const std::vector<double>& blends) = 0;
};

/// What the profile protects in a context, the same in every layer.
Protection ProtectionOf(Profile profile, int64_t context_tokens, int64_t head_tokens);

/// How the profile chooses among scores.
Selector SelectorOf(Profile profile);

/// The context has at least one token in the middle.
std::unique_ptr<Scorer> MakeScorer(const ModelConfig& model, const ScorerOptions& options);

}  // namespace docmem::engine
