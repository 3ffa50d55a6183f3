#include "server/runtime/engine_loop.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "server/errors/from_exception.h"

namespace docmem::server {

struct EngineLoop::Command {
  enum class Kind { kSubmit, kCancel, kPost, kWithdraw };
  Kind kind = Kind::kSubmit;
  Ticket ticket = 0;
  engine::SequenceRequest request;
  std::shared_ptr<SequenceSink> sink;
  std::shared_ptr<TensorWork> work;
  WorkUrgency urgency = WorkUrgency::kForeground;
  absl::Status status;
};

namespace {

int64_t SteadyNanos() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

class SliceClock {
 public:
  explicit SliceClock(std::atomic<int64_t>& began) : began_(began) {
    began_.store(SteadyNanos(), std::memory_order_relaxed);
  }
  ~SliceClock() { began_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t>& began_;
};

}  // namespace

EngineLoop::EngineLoop(std::shared_ptr<const engine::Engine> engine, Metrics* metrics,
                       EngineLoopOptions options)
    : engine_(std::move(engine)), metrics_(metrics), options_(options) {
  store::MutexLock lock(&join_mutex_);
  thread_ = std::thread([this] { Run(); });
}

EngineLoop::~EngineLoop() { Stop(absl::UnavailableError("the engine has stopped")); }

EngineLoop::Ticket EngineLoop::Submit(engine::SequenceRequest request,
                                      std::shared_ptr<SequenceSink> sink) {
  Command command;
  command.kind = Command::Kind::kSubmit;
  command.request = std::move(request);
  command.sink = std::move(sink);
  return Send(std::move(command));
}

void EngineLoop::Cancel(Ticket ticket, absl::Status status) {
  Command command;
  command.kind = Command::Kind::kCancel;
  command.ticket = ticket;
  command.status = std::move(status);
  Send(std::move(command));
}

EngineLoop::Ticket EngineLoop::Post(std::shared_ptr<TensorWork> work, WorkUrgency urgency) {
  Command command;
  command.kind = Command::Kind::kPost;
  command.urgency = urgency;
  command.work = std::move(work);
  return Send(std::move(command));
}

void EngineLoop::Withdraw(Ticket ticket, absl::Status status) {
  Command command;
  command.kind = Command::Kind::kWithdraw;
  command.ticket = ticket;
  command.status = std::move(status);
  Send(std::move(command));
}

EngineLoop::Ticket EngineLoop::Send(Command command) {
  absl::Status stopped;
  {
    store::MutexLock lock(&mutex_);
    if (!stopping_) {
      if (command.ticket == 0) command.ticket = next_ticket_++;
      const Ticket ticket = command.ticket;
      mailbox_.push_back(std::move(command));
      wake_.Signal();
      return ticket;
    }
    stopped = stop_status_;
  }
  if (command.sink) command.sink->OnClosed(stopped);
  if (command.work) command.work->OnClosed(stopped);
  return 0;
}

void EngineLoop::Stop(absl::Status status) {
  {
    store::MutexLock lock(&mutex_);
    if (!stopping_) {
      stopping_ = true;
      stop_status_ = std::move(status);
    }
    wake_.Signal();
  }
  store::MutexLock lock(&join_mutex_);
  if (thread_.joinable()) thread_.join();
}

absl::Duration EngineLoop::SliceAge() const {
  const int64_t began = slice_began_ns_.load(std::memory_order_relaxed);
  if (began == 0) return absl::ZeroDuration();
  return absl::Nanoseconds(SteadyNanos() - began);
}

void EngineLoop::Run() {
  pthread_setname_np(pthread_self(), "docmem-engine");  // what `top -H` shows
  session_ = std::make_unique<engine::Session>(engine_, options_.session);
  while (TakeMailbox()) {
    WorkUnits(DecodeStep());
    PublishCounts();
  }
  absl::Status status;
  {
    store::MutexLock lock(&mutex_);
    status = stop_status_;
  }
  CloseAll(status);
  session_.reset();
  PublishCounts();
}

bool EngineLoop::TakeMailbox() {
  std::vector<Command> commands;
  bool stopping = false;
  {
    store::MutexLock lock(&mutex_);
    while (mailbox_.empty() && !stopping_ && live_.empty() && work_.empty()) wake_.Wait(&mutex_);
    commands.swap(mailbox_);
    stopping = stopping_;
  }
  for (Command& command : commands) Apply(command);
  return !stopping;
}

void EngineLoop::Apply(Command& command) {
  switch (command.kind) {
    case Command::Kind::kSubmit:
      try {
        const engine::SequenceId id = session_->Add(std::move(command.request));
        live_.emplace(id, Live{command.ticket, std::move(command.sink)});
        sequence_of_.emplace(command.ticket, id);
      } catch (...) {
        command.request = {};
        command.sink->OnClosed(StatusFromException(std::current_exception()));
      }
      return;
    case Command::Kind::kCancel:
      if (const auto it = sequence_of_.find(command.ticket); it != sequence_of_.end()) {
        const engine::SequenceId id = it->second;
        session_->Cancel(id);
        CloseSequence(id, command.status);
      }
      return;
    case Command::Kind::kPost:
      work_.push_back(Work{command.ticket, std::move(command.work), command.urgency});
      return;
    case Command::Kind::kWithdraw:
      for (auto it = work_.begin(); it != work_.end(); ++it) {
        if (it->ticket != command.ticket) continue;
        const std::shared_ptr<TensorWork> work = std::move(it->work);
        work_.erase(it);
        PublishCounts();
        work->OnClosed(command.status);
        return;
      }
      return;
  }
}

absl::Duration EngineLoop::DecodeStep() {
  if (live_.empty()) return absl::ZeroDuration();
  const absl::Time began = absl::Now();
  std::vector<engine::SequenceEvent> events;
  {
    const SliceClock clock(slice_began_ns_);
    events = session_->Step();
  }
  const absl::Duration took = absl::Now() - began;
  metrics_->StepFinished(session_->last_step_rows(), took);
  for (const engine::SequenceEvent& event : events) {
    const auto it = live_.find(event.id);
    if (it == live_.end()) continue;
    if (event.error) {
      CloseSequence(event.id, StatusFromException(event.error));
      continue;
    }
    it->second.sink->OnEvent(event);
    if (event.finish) CloseSequence(event.id, absl::OkStatus());
  }
  return took;
}

void EngineLoop::WorkUnits(absl::Duration step) {
  const double share = options_.least_work_share;
  const absl::Duration slice = live_.empty() ? options_.idle_slice : step * (share / (1.0 - share));
  const absl::Time deadline = absl::Now() + slice;
  while (!work_.empty()) {
    RunOneUnit();
    if (absl::Now() >= deadline) return;
    if (!live_.empty()) continue;
    store::MutexLock lock(&mutex_);
    if (!mailbox_.empty() || stopping_) return;
  }
}

std::list<EngineLoop::Work>::iterator EngineLoop::NextWork() {
  const auto oldest = [this](WorkUrgency urgency) {
    return std::ranges::find(work_, urgency, &Work::urgency);
  };
  const auto foreground = oldest(WorkUrgency::kForeground);
  const auto background = oldest(WorkUrgency::kBackground);
  if (foreground == work_.end() || background == work_.end()) {
    background_due_ = absl::ZeroDuration();
    return work_.begin();
  }
  return background_due_ > absl::ZeroDuration() ? background : foreground;
}

void EngineLoop::RunOneUnit() {
  const auto next = NextWork();
  const std::shared_ptr<TensorWork> work = next->work;
  const absl::Time began = absl::Now();
  absl::Status status;
  bool done = false;
  try {
    const SliceClock clock(slice_began_ns_);
    done = work->Step();
  } catch (...) {
    status = StatusFromException(std::current_exception());
  }
  const absl::Duration took = absl::Now() - began;
  const double share = options_.least_background_share;
  background_due_ +=
      next->urgency == WorkUrgency::kBackground ? -took : took * (share / (1.0 - share));
  if (!done && status.ok()) return;
  work_.erase(next);
  PublishCounts();
  work->OnClosed(status);
}

void EngineLoop::CloseSequence(engine::SequenceId id, const absl::Status& status) {
  const auto it = live_.find(id);
  const Live live = std::move(it->second);
  live_.erase(it);
  sequence_of_.erase(live.ticket);
  PublishCounts();
  live.sink->OnClosed(status);
}

void EngineLoop::CloseAll(const absl::Status& status) {
  while (!live_.empty()) {
    const engine::SequenceId id = live_.begin()->first;
    session_->Cancel(id);
    CloseSequence(id, status);
  }
  while (!work_.empty()) {
    const std::shared_ptr<TensorWork> work = std::move(work_.front().work);
    work_.pop_front();
    work->OnClosed(status);
  }
}

void EngineLoop::PublishCounts() {
  running_.store(static_cast<int64_t>(live_.size()), std::memory_order_relaxed);
  work_count_.store(static_cast<int64_t>(work_.size()), std::memory_order_relaxed);
  own_kv_bytes_.store(session_ ? session_->kv_bytes() : 0, std::memory_order_relaxed);
}

}  // namespace docmem::server
