#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/transformer.h"
#include "engine/sequence.h"
#include "engine/session.h"

namespace docmem::engine {

/// Rows of one sequence in a flattened batch.
struct BatchSlice {
  Sequence* sequence = nullptr;
  int64_t first_row = 0;
  int64_t rows = 0;
};

/// Chooses the rows of the next step: one token of each answering sequence, those that have waited
/// longest first, then chunks of prompts in the order of `sequences`, as `options` allow. Slices on
/// one cache lie side by side, and inside a cache those with one adapter. Empty when nothing runs.
class BatchPlanner {
 public:
  explicit BatchPlanner(const SessionOptions& options) : options_(options) {}

  std::vector<BatchSlice> Plan(std::span<const std::unique_ptr<Sequence>> sequences);

 private:
  SessionOptions options_;
  SequenceId last_answered_ = 0;
};

/// Runs the batch through the model and writes the sequences' own KV (without advancing them).
/// Returns one tensor per slice: logits [W, V] fp32 on the CPU of its wanted rows; W may be 0. The
/// caller is in inference mode.
std::vector<at::Tensor> RunBatch(const Transformer& model, std::span<const BatchSlice> slices);

}  // namespace docmem::engine
