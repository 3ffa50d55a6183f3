#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/sync.h"
#include "server/ingest/build.h"
#include "server/query/asker.h"
#include "server/query/question.h"
#include "server/query/quotas.h"
#include "server/query/resolver.h"
#include "server/runtime/engine_loop.h"
#include "server/runtime/executor.h"
#include "server/runtime/memories.h"
#include "server/runtime/timer.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

class LiveQuestion;

/// Builds an absent cache for a question that asked for it, then calls `done` once.
using BuildMissingCache =
    std::function<void(CacheBuildRequest request, absl::AnyInvocable<void(absl::Status)> done)>;

struct SchedulerOptions {
  uint32_t max_queue = 256;     ///< questions that wait: resolving, building, for a slot, loading
  uint32_t max_sequences = 32;  ///< questions that load or run
  uint64_t kv_budget_bytes = uint64_t{512} << 20;  ///< their own tokens' keys and values
  absl::Duration heartbeat = absl::Seconds(15);    ///< between two progress messages
};

/// What the scheduler works with; all of it must outlive the scheduler.
struct SchedulerParts {
  std::shared_ptr<const engine::Engine> engine;
  store::AdapterStore* store = nullptr;
  Memories* memories = nullptr;
  EngineLoop* loop = nullptr;
  Timer* timer = nullptr;
  Executor* executor = nullptr;  ///< for registry look-ups
  Metrics* metrics = nullptr;
  BuildMissingCache build_missing;
};

struct QueueCounts {
  uint32_t waiting = 0;
  uint32_t loading = 0;
  uint32_t running = 0;
};

/// The way of a question from admission to its end: look it up, wait for a slot, lease its
/// memories, run it, give the slot back. Questions get slots in the order of their arrival, batch
/// ones as if they had come `LiveQuestion::kBatchDelay` later; a slot includes room for the keys
/// and values of question and answer. While one loads, the others run, and the memories of the next
/// ones in the queue are loaded ahead. Deadlines and aborts act at once on a waiting question and
/// at the engine's next step on a running one.
///
/// Thread-safe; nothing but `Submit` blocks. Sinks are called without a lock held.
class Scheduler : public Asker {
 public:
  Scheduler(SchedulerParts parts, SchedulerOptions options);
  /// Everything must have ended: see `Close`.
  ~Scheduler() override;

  absl::Status Submit(Question question, std::shared_ptr<AnswerSink> sink) override;
  bool End(const std::string& principal, const std::string& request_id,
           absl::Status status) override;

  /// Refuses new questions with `status`; open ones go on. `Reopen` undoes it.
  void Close(absl::Status status);
  void Reopen();
  /// Ends all live questions with `status`; they close soon after.
  void EndAll(const absl::Status& status);

  QueueCounts Counts() const;

 private:
  friend class LiveQuestion;
  using LivePtr = std::shared_ptr<LiveQuestion>;
  using LiveKey = std::pair<std::string, std::string>;

  void Resolve(const LivePtr& live);
  void Resolved(const LivePtr& live, absl::StatusOr<ResolvedQuestion> resolved);
  void BuildCache(const LivePtr& live);
  void Enqueue(const LivePtr& live);
  /// Gives free slots to the first waiting questions.
  void Pump();
  LivePtr TakeNext();
  /// Loads the memories of the first questions that still wait.
  void PrefetchNext();
  void Load(const LivePtr& live);
  void Loaded(const LivePtr& live, absl::StatusOr<LeasedMemories> memories);
  void Heartbeat(const LivePtr& live);
  /// Ends a question wherever it is; the first status wins.
  void EndLive(const LivePtr& live, absl::Status status);
  /// The last call on every path: frees slot and request id, closes the sink.
  void Retire(const LivePtr& live, const absl::Status& status);
  uint32_t PositionOf(const LivePtr& live) const;
  absl::Status CheckQuotas(const Question& question, const QuestionLimits& of_collection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordTokenGap(absl::Duration gap) { parts_.metrics->TokenGap(gap); }

  const SchedulerParts parts_;
  const SchedulerOptions options_;
  const Resolver resolver_;

  mutable store::Mutex mutex_;
  std::map<LiveKey, LivePtr> live_ ABSL_GUARDED_BY(mutex_);
  Quotas quotas_ ABSL_GUARDED_BY(mutex_);
  std::list<LivePtr> ready_ ABSL_GUARDED_BY(mutex_);  ///< resolved, without a slot, by turn
  uint32_t slots_used_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t kv_bytes_used_ ABSL_GUARDED_BY(mutex_) = 0;  ///< of those with a slot
  uint64_t next_arrival_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace docmem::server
