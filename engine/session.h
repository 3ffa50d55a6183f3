#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/artifacts/adapter.h"
#include "engine/artifacts/cache.h"
#include "engine/artifacts/mode.h"
#include "engine/engine.h"
#include "engine/sampling/sampler.h"

namespace docmem::engine {

using SequenceId = uint64_t;

/// One question to be answered (or one answer to be scored) over one document's memories.
///
/// Cache and adapter together are the mode: a base cache without adapter is `BASE`, with one
/// `BASE_KV_ADAPTER_DECODE`; a cache that an adapter wrote or scored needs that adapter.
struct SequenceRequest {
  std::shared_ptr<const Cache> cache;
  std::shared_ptr<const Adapter> adapter;  ///< null: base model
  AdapterScope scope = AdapterScope::kQuestionAndAnswer;
  std::vector<int32_t> prompt_ids;  ///< bridge, question, tail; not empty
  /// Not empty: the tokens aren't sampled but given, and their log-probabilities are wanted
  /// (`Score`); sampling, stop strings and `max_tokens` are then ignored.
  std::vector<int32_t> answer_ids;
  SamplingOptions sampling;
  uint32_t max_tokens = 256;
  std::vector<std::string> stop_strings;  ///< answer ends before the first occurrence of one
};

enum class FinishReason { kEndOfTurn, kStopString, kLength, kScored };

/// What happened to one sequence in one step. Text is complete UTF-8 and never holds a part of a
/// stop string that may still come true; the texts' concatenation is the answer.
struct SequenceEvent {
  SequenceId id = 0;
  std::string text;
  std::vector<int32_t> token_ids;  ///< tokens of this step, end of turn included
  std::vector<float> logprobs;     ///< one per token id: raw log-softmax in fp32
  std::optional<FinishReason> finish;
  /// With `finish`: bytes of an unfinished character at the end of an answer cut by its length.
  uint32_t dropped_bytes = 0;
  std::exception_ptr error;  ///< set: the sequence ended with this error (e.g. NaN logits)
};

struct SessionOptions {
  int64_t max_rows_per_step = 256;  ///< rows of one flattened batch; longer prompts are chunked
  /// Of those, rows of prompts in a step with answers, which keep their pace this way.
  int64_t max_prompt_rows_beside_answers = 64;
};

/// All running sequences of one device: continuous batching over documents and adapters. A step is
/// one flattened batch: prompt chunks of new sequences and one token of each running one; each row
/// has its own position, cache, own KV so far, and adapter (none is ever merged into the base).
/// Documents' KV is read in place and shared; question and answer KV is never shared.
///
/// Everything that changes lives here. Not thread-safe: one thread. A sequence's cache and adapter
/// are held from `Add` until the event with `finish` or `error`, or `Cancel`.
class Session {
 public:
  explicit Session(std::shared_ptr<const Engine> engine, SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Throws `kInvalidArgument` (empty prompt, positions over the model's with both numbers,
  /// sampling, stop strings), `kFailedPrecondition` (a cache of another model or of another adapter
  /// than the request's) and leaves the session as it was.
  SequenceId Add(SequenceRequest request);

  /// Runs one step; empty when nothing runs. One event per sequence that made visible progress. An
  /// error of one sequence doesn't touch the others; an error of the whole step ends all sequences
  /// of that step with it.
  std::vector<SequenceEvent> Step();

  /// Drops the sequence and its KV at once; unknown or ended ids are ignored.
  void Cancel(SequenceId id);

  int64_t running() const;  ///< sequences added and not ended
  int64_t last_step_rows() const;
  uint64_t kv_bytes() const;  ///< bytes of all sequences' own KV

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace docmem::engine
