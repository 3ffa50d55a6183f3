#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "adapter_store/resident_core.h"
#include "adapter_store/types.h"
#include "engine/artifacts/mode.h"
#include "engine/compression/profile.h"
#include "engine/sampling/sampling_options.h"
#include "engine/text/prompt_format.h"
#include "server/query/quotas.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

enum class Priority { kInteractive, kBatch };

/// What a caller asks, checked for form but not yet against the registry.
struct Question {
  std::string principal;   ///< who asks; request ids are unique among a principal's live questions
  std::string request_id;  ///< not empty
  absl::Time deadline = absl::InfiniteFuture();
  Priority priority = Priority::kInteractive;
  QuestionLimits limits;  ///< of the principal

  store::DocumentKey document;  ///< id empty: the one of the collection that fits best
  std::optional<engine::Mode> mode;
  std::optional<uint32_t> ratio_ppm;
  std::string cache_id;  ///< empty: by ratio, or the document's default
  std::optional<engine::Profile> profile;
  bool build_if_missing = false;
  uint32_t adapter_version = 0;  ///< 0: the current one
  std::optional<engine::AdapterScope> scope;
  bool allow_adapter_mismatch = false;

  std::string question;
  std::string instruction;
  std::vector<engine::Turn> history;

  uint32_t max_tokens = 256;
  engine::SamplingOptions sampling;
  std::vector<std::string> stop;
  /// Set: score this answer instead of writing one.
  std::optional<std::string> answer_to_score;
};

struct AnswerStarted {
  std::string request_id;
  store::DocumentKey document;
  std::string cache_id;
  uint32_t ratio_ppm = 0;
  engine::Mode mode = engine::Mode::kBase;
  uint32_t adapter_version = 0;  ///< 0: none
  std::string adapter_hash;
  store::Tier cache_tier = store::Tier::kDisk;
  store::Tier adapter_tier = store::Tier::kDisk;
  absl::Time deadline;
};

struct AnswerProgress {
  enum class Phase { kQueued, kLoading, kBuildingCache };
  Phase phase = Phase::kQueued;
  uint32_t queue_position = 0;  ///< questions before this one; 0 when not queued
  absl::Duration elapsed;
};

struct AnswerDelta {
  std::string text;  ///< whole characters
  std::vector<int32_t> token_ids;
  std::vector<float> logprobs;  ///< one per token id
};

struct AnswerFinished {
  enum class Reason { kEndOfTurn, kStopString, kLength, kScored };
  Reason reason = Reason::kEndOfTurn;
  uint32_t prompt_tokens = 0;
  uint32_t answer_tokens = 0;  ///< end of turn not counted
  uint32_t document_tokens_prefilled = 0;
  uint32_t dropped_bytes = 0;
  absl::Duration queue, load, prefill, decode;
  absl::Duration first_token;  ///< since admission

  AnswerMeasures measures() const {
    return {.queue = queue,
            .first_token = first_token,
            .tokens_in = prompt_tokens,
            .tokens_out = answer_tokens};
  }
};

/// Takes an answer. Calls come one at a time, from any thread, and must not block:
/// `OnStarted` once, then progress and deltas, `OnFinished` at most once, `OnClosed` exactly once
/// and last. `OnClosed` is OK only after `OnFinished`; the question then holds no memory any more.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void OnStarted(const AnswerStarted& started) = 0;
  virtual void OnProgress(const AnswerProgress& progress) = 0;
  virtual void OnDelta(AnswerDelta delta) = 0;
  virtual void OnFinished(const AnswerFinished& finished) = 0;
  virtual void OnClosed(const absl::Status& status) = 0;
};

}  // namespace docmem::server
