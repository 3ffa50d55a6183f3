// Whose turn it is: loads, slots, and what is loaded ahead.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/query/live_question.h"
#include "server/query/scheduler.h"

namespace docmem::server {

using Holds = LiveQuestion::Holds;
using Stage = LiveQuestion::Stage;

namespace {

constexpr int kPrefetchedQuestions = 4;

}  // namespace

void Scheduler::Queue(const LivePtr& live, Holds holds) {
  {
    store::MutexLock lock(&mutex_);
    if (live->stage() == Stage::kRetired) return;  // `Retire` has been here
    if (live->holds == Holds::kLoad) --loading_;
    live->holds = holds;
    const auto later = std::find_if(ready_.begin(), ready_.end(), [&](const LivePtr& other) {
      return other->turn() > live->turn();
    });
    ready_.insert(later, live);
  }
  Pump();
}

// One thread at a time, for all: a question whose memories are loaded is queued again from here.
void Scheduler::Pump() {
  {
    store::MutexLock lock(&mutex_);
    if (std::exchange(pumping_, true)) return;
  }
  while (true) {
    const auto [live, holds] = TakeNext();
    if (live == nullptr) break;
    if (holds == Holds::kSlot) {
      Run(live);
    } else {
      Load(live);
    }
  }
  PrefetchNext();
}

std::pair<Scheduler::LivePtr, Holds> Scheduler::TakeNext() {
  store::MutexLock lock(&mutex_);
  const bool may_load = loading_ < options_.max_sequences;
  auto next = ready_.end();
  if (slots_used_ < options_.max_sequences) {
    next = std::find_if(ready_.begin(), ready_.end(), [&](const LivePtr& live) {
      return may_load || live->holds == Holds::kMemories || IsLoaded(live->resolved);
    });
  }
  if (next == ready_.end() || kv_bytes_used_ + (*next)->kv_bytes > options_.kv_budget_bytes) {
    pumping_ = false;
    return {nullptr, Holds::kNothing};
  }
  LivePtr live = std::move(*next);
  ready_.erase(next);
  if (live->holds == Holds::kMemories) {
    live->holds = Holds::kSlot;
    for (const std::string& who : live->quota_holders()) quotas_.Run(who);
    ++slots_used_;
    kv_bytes_used_ += live->kv_bytes;
  } else {
    live->holds = Holds::kLoad;
    ++loading_;
  }
  const Holds holds = live->holds;
  return {std::move(live), holds};
}

bool Scheduler::IsLoaded(const ResolvedQuestion& resolved) const {
  return parts_.memories->IsLoaded(resolved.document, *resolved.cache) &&
         (!resolved.adapter || parts_.memories->IsLoaded(*resolved.adapter));
}

void Scheduler::PrefetchNext() {
  std::vector<LivePtr> next;
  {
    store::MutexLock lock(&mutex_);
    int first = 0;
    for (auto live = ready_.begin(); live != ready_.end() && first < kPrefetchedQuestions; ++live) {
      if ((*live)->holds == Holds::kMemories) continue;
      ++first;
      if (!std::exchange((*live)->prefetched, true)) next.push_back(*live);
    }
  }
  for (const LivePtr& live : next) {
    const ResolvedQuestion& resolved = live->resolved;
    if (IsLoaded(resolved)) continue;
    parts_.memories->Prefetch(resolved.document, *resolved.cache,
                              resolved.adapter ? &*resolved.adapter : nullptr,
                              [](const absl::Status&) {});
  }
}

void Scheduler::Load(const LivePtr& live) {
  if (!live->Advance(Stage::kLoading, [&] { live->lease_time = absl::Now(); })) return;
  const ResolvedQuestion& resolved = live->resolved;
  const Memories::AcquireId acquire = parts_.memories->Acquire(
      resolved.document, *resolved.cache, resolved.adapter ? &*resolved.adapter : nullptr,
      store::WhenFull::kWait,
      [this, live](absl::StatusOr<LeasedMemories> memories) { Loaded(live, std::move(memories)); });
  if (!live->Update([&] { live->acquire = acquire; })) parts_.memories->Cancel(acquire);
}

void Scheduler::Loaded(const LivePtr& live, absl::StatusOr<LeasedMemories> memories) {
  if (!memories.ok()) return EndLive(live, memories.status());
  const bool alive = live->Advance(Stage::kReady, [&] {
    live->memories = *std::move(memories);
    live->load_time = absl::Now();
  });
  if (alive) Queue(live, Holds::kMemories);
}

void Scheduler::Run(const LivePtr& live) {
  engine::SequenceRequest request;
  const bool alive = live->Advance(Stage::kSubmitting, [&] {
    request.cache = std::move(live->memories.cache);
    request.adapter = std::move(live->memories.adapter);
    live->slot_time = absl::Now();
  });
  if (!alive) return;
  const Question& question = live->question();
  request.scope = live->resolved.scope;
  request.prompt_ids = live->resolved.prompt_ids;
  request.answer_ids = live->resolved.answer_ids;
  request.sampling = question.sampling;
  request.max_tokens = question.max_tokens;
  request.stop_strings = question.stop;
  const EngineLoop::Ticket ticket = parts_.loop->Submit(std::move(request), live);
  if (!live->Advance(Stage::kRunning, [&] { live->ticket = ticket; })) {
    parts_.loop->Cancel(ticket, live->end_status());
  }
}

}  // namespace docmem::server
