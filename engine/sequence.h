#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/own_kv.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/stop_matcher.h"
#include "engine/session.h"
#include "engine/text/stream_decoder.h"

namespace docmem::engine {

/// One running sequence of a session. It is *fed* tokens: those of the prompt, then (sampling) each
/// answer token, or (scoring) all answer tokens but the last. The logits of the last prompt row and
/// of every row behind it are wanted. One thread.
class Sequence {
 public:
  /// Throws as `Session::Add`.
  Sequence(SequenceId id, SequenceRequest request, const Engine& engine);

  SequenceId id() const { return id_; }
  const SequenceRequest& request() const { return request_; }
  OwnKv& own_kv() { return own_kv_; }
  const OwnKv& own_kv() const { return own_kv_; }

  /// Tokens that wait to be fed; at least one while the sequence runs.
  std::span<const int32_t> Waiting() const;
  /// True when one sampled token waits, false while prompt (or scored) tokens do.
  bool answering() const { return !scoring() && fed_ >= PromptTokens(); }
  /// Position of the first waiting token.
  int64_t next_position() const { return request_.cache->next_position() + fed_; }

  /// Of the next `rows` tokens: how many first ones the base model computes whatever the adapter.
  int64_t BaseRows(int64_t rows) const;
  /// Of the next `rows` tokens: how many last ones have logits that are wanted.
  int64_t WantedRows(int64_t rows) const;

  /// The next `rows` tokens have been fed. logits [W, V] fp32 of the wanted ones, on the CPU; W may
  /// be 0. Nothing when there is nothing to tell. Throws `kInternal` when logits aren't finite.
  std::optional<SequenceEvent> Advance(int64_t rows, const at::Tensor& logits);

 private:
  bool scoring() const { return !request_.answer_ids.empty(); }
  int64_t PromptTokens() const { return static_cast<int64_t>(request_.prompt_ids.size()); }
  void Validate(const Engine& engine) const;
  void Score(const at::Tensor& logits, SequenceEvent* event);
  void Sample(const at::Tensor& logits, SequenceEvent* event);
  void End(FinishReason reason, SequenceEvent* event);

  SequenceId id_;
  SequenceRequest request_;
  std::vector<int32_t> feed_;
  int64_t fed_ = 0;
  int64_t answered_ = 0;
  std::vector<int32_t> stop_ids_;
  OwnKv own_kv_;
  Sampler sampler_;
  StreamDecoder decoder_;
  StopMatcher stop_matcher_;
};

}  // namespace docmem::engine
