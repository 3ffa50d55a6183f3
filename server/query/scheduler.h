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
#include "server/query/live_question.h"
#include "server/query/question.h"
#include "server/query/quotas.h"
#include "server/query/resolver.h"
#include "server/runtime/engine_loop.h"
#include "server/runtime/executor.h"
#include "server/runtime/memories.h"
#include "server/runtime/timer.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

/// Builds an absent cache for a question that asked for it, then calls `done` once.
using BuildMissingCache =
    std::function<void(CacheBuildRequest request, absl::AnyInvocable<void(absl::Status)> done)>;

struct SchedulerOptions {
  /// Questions that wait: resolving, building, loading, for a slot. Batch questions may fill three
  /// quarters of it (one place at least), the rest is kept for interactive ones.
  uint32_t max_queue = 256;
  uint32_t max_sequences = 32;                     ///< questions that run; as many may load
  uint64_t kv_budget_bytes = uint64_t{512} << 20;  ///< for the own tokens of those that run
  absl::Duration batch_delay = absl::Seconds(30);  ///< by which a batch question counts as later
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

/// The way of a question from admission to its end: look it up, lease its memories, run it in a
/// slot, give all back. Questions come up in the order of their arrival, batch ones as if they had
/// come `batch_delay` later. While a slot is free, the first one leases its memories; it takes the
/// slot, with room for the keys and values of question and answer, only when it has them. So those
/// whose memories are loaded go on while others load or wait for bytes. The memories of the next
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
  using Holds = LiveQuestion::Holds;

  /// How many questions may wait for one of this priority to be admitted.
  uint64_t QueueLimit(Priority priority) const;
  absl::Duration DelayOf(Priority priority) const;

  /// Whether one more may be admitted: open, another request id, a place in the queue.
  absl::Status CheckRoom(const Question& question) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resolve(const LivePtr& live);
  void Resolved(const LivePtr& live, absl::StatusOr<ResolvedQuestion> resolved);
  void BuildCache(const LivePtr& live);
  void Enqueue(const LivePtr& live);
  /// Waits for its turn, with what it `holds` by now: nothing, or its memories.
  void Queue(const LivePtr& live, Holds holds);
  /// Lets the questions whose turn it is load or run.
  void Pump();
  /// The next one and what it got: `kLoad` or `kSlot`. Null, and pumping has ended: none may go on.
  std::pair<LivePtr, Holds> TakeNext();
  bool IsLoaded(const ResolvedQuestion& resolved) const;
  /// Loads the memories of the first questions that still wait.
  void PrefetchNext();
  void Load(const LivePtr& live);
  void Loaded(const LivePtr& live, absl::StatusOr<LeasedMemories> memories);
  void Run(const LivePtr& live);
  void Heartbeat(const LivePtr& live);
  /// Ends a question wherever it is; the first status wins.
  void EndLive(const LivePtr& live, absl::Status status);
  /// The last call on every path: frees slot and request id, closes the sink.
  void Retire(const LivePtr& live, const absl::Status& status);
  uint32_t PositionOf(const LivePtr& live) const;
  void RecordTokenGap(absl::Duration gap) { parts_.metrics->TokenGap(gap); }

  const SchedulerParts parts_;
  const SchedulerOptions options_;
  const Resolver resolver_;

  mutable store::Mutex mutex_;
  std::map<LiveKey, LivePtr> live_ ABSL_GUARDED_BY(mutex_);
  Quotas quotas_ ABSL_GUARDED_BY(mutex_);
  std::list<LivePtr> ready_ ABSL_GUARDED_BY(mutex_);  ///< wait for load or slot, by turn
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;      ///< some thread is in `Pump`
  uint32_t loading_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t slots_used_ ABSL_GUARDED_BY(mutex_) = 0;     ///< never more than `live_` has
  uint64_t kv_bytes_used_ ABSL_GUARDED_BY(mutex_) = 0;  ///< of those with a slot
  uint64_t next_arrival_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace docmem::server
