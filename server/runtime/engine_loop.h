#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "adapter_store/sync.h"
#include "engine/session.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

/// Receives what happens to one sequence. Both functions are called on the engine thread and must
/// neither block nor call back into the loop's destructor or `Stop`.
class SequenceSink {
 public:
  virtual ~SequenceSink() = default;
  /// Progress; the last one of a sequence that came to its end has `finish`.
  virtual void OnEvent(const engine::SequenceEvent& event) = 0;
  /// Exactly once, last: the sequence has ended and holds its cache and adapter no more. OK after
  /// an event with `finish`; else why it ended.
  virtual void OnClosed(const absl::Status& status) = 0;
};

/// A long tensor computation in units, done between decode steps: ingestion, training.
class TensorWork {
 public:
  virtual ~TensorWork() = default;
  /// One unit, on the engine thread. True when all is done. What it throws ends the work.
  virtual bool Step() = 0;
  /// Exactly once, on the engine thread: OK after `Step` returned true; else why it ended.
  virtual void OnClosed(const absl::Status& status) = 0;
};

/// Who waits for work: somebody for an ingestion, nobody for a training.
enum class WorkUrgency { kForeground, kBackground };

struct EngineLoopOptions {
  engine::SessionOptions session;
  /// How long units of work may run on end while no sequence runs.
  absl::Duration idle_slice = absl::Milliseconds(250);
  /// Which part of the engine's time waiting work gets at least while sequences run: one unit
  /// between two decode steps, and more where units are short.
  double least_work_share = 0.1;
  /// Which part of the work's time background work gets at least while foreground work waits.
  double least_background_share = 0.1;
};

/// The one thread of a device that owns the session and runs all tensor work. Each turn: take the
/// mailbox, one decode step over all running sequences, a unit (or some short ones) of the oldest
/// foreground work, or of the oldest background work where there is none or its share is due.
///
/// All public functions may be called from any thread; none waits for tensor work but `Stop`.
class EngineLoop {
 public:
  using Ticket = uint64_t;

  EngineLoop(std::shared_ptr<const engine::Engine> engine, Metrics* metrics,
             EngineLoopOptions options);
  /// Stops with `kUnavailable` if `Stop` wasn't called.
  ~EngineLoop();

  /// The sequence joins the next step. A request that the session refuses is closed with that
  /// status; after `Stop` with its status.
  Ticket Submit(engine::SequenceRequest request, std::shared_ptr<SequenceSink> sink);
  /// Ends a sequence at the next step with `status`; unknown or ended tickets are ignored.
  void Cancel(Ticket ticket, absl::Status status);

  /// Work of one urgency runs in the order it was posted, one at a time, to its end.
  Ticket Post(std::shared_ptr<TensorWork> work, WorkUrgency urgency = WorkUrgency::kForeground);
  /// Ends work before its next unit with `status`; unknown or ended tickets are ignored.
  void Withdraw(Ticket ticket, absl::Status status);

  /// Closes everything with `status`, at a step's border, and joins the thread. Idempotent.
  void Stop(absl::Status status);

  int64_t running_sequences() const { return running_.load(std::memory_order_relaxed); }
  int64_t waiting_work() const { return work_count_.load(std::memory_order_relaxed); }
  uint64_t own_kv_bytes() const { return own_kv_bytes_.load(std::memory_order_relaxed); }
  /// For how long the step or unit that runs now has been running; zero between two.
  absl::Duration SliceAge() const;

 private:
  struct Command;
  struct Live {
    Ticket ticket = 0;
    std::shared_ptr<SequenceSink> sink;
  };
  struct Work {
    Ticket ticket = 0;
    std::shared_ptr<TensorWork> work;
    WorkUrgency urgency = WorkUrgency::kForeground;
  };

  Ticket Send(Command command);
  void Run();
  /// False when the loop shall end.
  bool TakeMailbox();
  void Apply(Command& command);
  /// Returns how long it took.
  absl::Duration DecodeStep();
  void WorkUnits(absl::Duration step);
  /// The work whose turn it is; there is some.
  std::list<Work>::iterator NextWork();
  void RunOneUnit();
  void CloseSequence(engine::SequenceId id, const absl::Status& status);
  void CloseAll(const absl::Status& status);
  void PublishCounts();

  // Constant.
  const std::shared_ptr<const engine::Engine> engine_;
  Metrics* const metrics_;
  const EngineLoopOptions options_;

  // Atomic.
  std::atomic<int64_t> running_{0};
  std::atomic<int64_t> work_count_{0};
  std::atomic<uint64_t> own_kv_bytes_{0};
  std::atomic<int64_t> slice_began_ns_{0};  // 0: between two slices

  // Engine thread only.
  std::unique_ptr<engine::Session> session_;
  std::unordered_map<engine::SequenceId, Live> live_;
  std::unordered_map<Ticket, engine::SequenceId> sequence_of_;
  std::list<Work> work_;
  absl::Duration background_due_;  // what background work may run before foreground work goes on

  mutable store::Mutex mutex_;
  store::CondVar wake_;
  std::vector<Command> mailbox_ ABSL_GUARDED_BY(mutex_);
  Ticket next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stop_status_ ABSL_GUARDED_BY(mutex_);

  store::Mutex join_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(join_mutex_);
};

}  // namespace docmem::server
