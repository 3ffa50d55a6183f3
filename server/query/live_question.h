#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "adapter_store/sync.h"
#include "server/query/question.h"
#include "server/query/resolver.h"
#include "server/runtime/engine_loop.h"
#include "server/runtime/memories.h"
#include "server/runtime/timer.h"

namespace docmem::server {

class Scheduler;

/// One question between admission and its end, and the only one who calls its sink. The scheduler
/// moves it on; the first end wins, whatever stage it meets. Thread-safe.
class LiveQuestion : public SequenceSink, public std::enable_shared_from_this<LiveQuestion> {
 public:
  enum class Stage { kResolving, kBuilding, kReady, kLoading, kSubmitting, kRunning, kRetired };

  /// What it has of the scheduler: a place among those that load, its memories, and at last a slot
  /// to run in beside them.
  enum class Holds { kNothing, kLoad, kMemories, kSlot };

  LiveQuestion(Scheduler* scheduler, Question question, uint64_t arrival,
               std::shared_ptr<AnswerSink> sink);

  const Question& question() const { return question_; }
  uint64_t arrival() const { return arrival_; }
  /// Its principal and its collection, as `Quotas` counts them.
  const std::array<std::string, 2>& quota_holders() const { return quota_holders_; }
  absl::Time admitted() const { return admitted_; }
  /// Questions get loads and slots in this order.
  std::pair<absl::Time, uint64_t> turn() const { return {turn_, arrival_}; }
  Stage stage() const { return stage_.load(std::memory_order_relaxed); }

  /// Moves to `to`, running `change` with the members below in hand; false, and nothing done, when
  /// the question has ended.
  bool Advance(Stage to, absl::FunctionRef<void()> change);
  /// Runs `change` without moving; false as `Advance`.
  bool Update(absl::FunctionRef<void()> change);
  /// Marks it ended with `status` and tells where it was; `kRetired` when it had ended before.
  Stage MarkEnded(const absl::Status& status);
  absl::Status end_status() const;
  /// The first call only: true, and no sink call comes after the one to `CloseSink`.
  bool Retire();

  void Started(const AnswerStarted& started);
  void Progress(const AnswerProgress& progress);
  void CloseSink(const absl::Status& status);
  const AnswerFinished& finished() const { return finished_; }  ///< after `CloseSink`

  void OnEvent(const engine::SequenceEvent& event) override;  // SequenceSink
  void OnClosed(const absl::Status& status) override;

  // Written by the scheduler: inside `Advance`, or before anyone else knows the question.
  ResolvedQuestion resolved;
  uint32_t document_tokens_prefilled = 0;
  uint64_t kv_bytes = 0;          ///< at most, of its own tokens
  Holds holds = Holds::kNothing;  ///< under the scheduler's lock
  bool prefetched = false;        ///< under the scheduler's lock
  LeasedMemories memories;        ///< from the end of the load until it runs
  Memories::AcquireId acquire = 0;
  EngineLoop::Ticket ticket = 0;
  Timer::Id deadline_timer = 0;
  std::atomic<Timer::Id> heartbeat_timer{0};
  absl::Time lease_time = absl::InfiniteFuture();  ///< when its memories were asked for
  absl::Time load_time = absl::InfiniteFuture();   ///< when they were at hand
  absl::Time slot_time = absl::InfiniteFuture();   ///< when it began to run

 private:
  AnswerFinished Finish(const engine::SequenceEvent& event);

  Scheduler* const scheduler_;
  const Question question_;
  const uint64_t arrival_;
  const std::array<std::string, 2> quota_holders_;
  const absl::Time admitted_;
  const absl::Time turn_;

  std::atomic<Stage> stage_{Stage::kResolving};

  mutable store::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);

  store::Mutex sink_mutex_;                                        ///< one sink call at a time
  std::shared_ptr<AnswerSink> sink_ ABSL_GUARDED_BY(sink_mutex_);  ///< null after `CloseSink`

  // Engine thread, then whoever closes the sink.
  absl::Time first_token_ = absl::InfiniteFuture();
  absl::Time last_token_;
  uint32_t answer_tokens_ = 0;
  AnswerFinished finished_;
};

}  // namespace docmem::server
