#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/errors.h"
#include "adapter_store/resident_core_impl.h"

namespace docmem::store::internal {
namespace {

absl::Status CheckItems(const std::vector<CoreItem>& items) {
  absl::flat_hash_set<ResidentKey> keys;
  for (const CoreItem& item : items) {
    if (!keys.insert(item.key).second) {
      return absl::InternalError("an item was asked for twice in one request");
    }
  }
  return absl::OkStatus();
}

}  // namespace

AcquireId CoreImpl::Acquire(std::vector<CoreItem> items, WhenFull when_full, CoreDone done) {
  auto request = std::make_unique<Request>();
  request->items = std::move(items);
  request->when_full = when_full;
  request->done = std::move(done);
  request->arrived = clock_();
  absl::Status status = CheckItems(request->items);
  AcquireId id = 0;
  Effects now;
  Effects later;
  {
    MutexLock lock(&mutex_);
    id = request->id = ++last_id_;
    if (closed_) status.Update(absl::CancelledError("the daemon is shutting down"));
    for (const CoreItem& item : request->items) {
      const auto entry = entries_.find(item.key);
      const bool hit = entry != entries_.end() && !entry->second->loading;
      ResidentKindStats& stats = stats_[static_cast<size_t>(item.key.kind)];
      ++stats.lookups;
      if (hit) ++stats.hits;
      request->found_in.push_back(hit ? tier_ : item.source);
    }
    if (!status.ok()) {
      FailRequest(std::move(request), status, now);
    } else {
      Admission admission = Admission::kMustWait;
      if (!FitsBesidePins(*request)) {
        admission = Admission::kNever;
      } else if (waiting_.empty() || MayPass(*request)) {
        admission = TryAdmit(*request, later);
      }
      Settle(std::move(request), admission, now);
    }
  }
  Dispatch(std::move(later));
  for (auto& [callback, result] : now.completions) callback(std::move(result));
  return id;
}

// Puts a request where its admission leads: to the waiting, to the loading, or to its end.
void CoreImpl::Settle(std::unique_ptr<Request> request, Admission admission, Effects& effects) {
  if (admission == Admission::kAdmitted) {
    if (request->loads_open == 0) return Complete(std::move(request), effects);
    const AcquireId id = request->id;
    admitted_.emplace(id, std::move(request));
  } else if (admission == Admission::kNever || request->when_full == WhenFull::kFail) {
    const absl::Status full = Full(*request);
    FailRequest(std::move(request), full, effects);
  } else {
    waiting_.push_back(std::move(request));
  }
}

Admission CoreImpl::TryAdmit(Request& request, Effects& effects) {
  const uint64_t need = NeedOf(request);
  const uint64_t free = budget_ - std::min(budget_, used_);
  if (need > free) {
    const std::optional<std::vector<ResidentKey>> victims = ChooseVictims(need - free, request);
    if (!victims.has_value()) {
      return FitsBesidePins(request) ? Admission::kMustWait : Admission::kNever;
    }
    for (const ResidentKey& key : *victims) {
      const std::shared_ptr<Entry> entry = entries_.at(key);
      policy_->Unload(key);
      ++StatsOf(*entry).unloads_for_room;
      entries_.erase(key);
      Drop(*entry, effects);
    }
    // The loads run behind the destruction of the victims; what these free beyond is others' then.
    used_ -= need - free;
    effects.dropped_bytes -= need - free;
  }
  Place(request, effects);
  return Admission::kAdmitted;
}

uint64_t CoreImpl::NeedOf(const Request& request) const {
  uint64_t need = 0;
  for (const CoreItem& item : request.items) {
    if (!entries_.contains(item.key)) need += item.bytes;
  }
  return need;
}

bool CoreImpl::FitsBesidePins(const Request& request) const {
  uint64_t bytes = pinned_bytes_;
  for (const CoreItem& item : request.items) {
    const auto found = entries_.find(item.key);
    if (found == entries_.end()) {
      bytes += item.bytes;
    } else if (!found->second->pinned) {
      bytes += found->second->bytes;
    }
  }
  return bytes <= budget_;
}

// Only what needs no bytes may pass requests that wait for some. A lease keeps bytes from them, so
// not for ever; where pins keep them anyway it does no harm.
bool CoreImpl::MayPass(const Request& request) const {
  bool pinned = true;
  for (const CoreItem& item : request.items) {
    const auto found = entries_.find(item.key);
    if (found == entries_.end()) return false;
    pinned = pinned && found->second->pinned;
  }
  return pinned || clock_() - waiting_.front()->arrived < patience_;
}

std::optional<std::vector<ResidentKey>> CoreImpl::ChooseVictims(uint64_t bytes,
                                                                const Request& request) const {
  std::vector<UnloadCandidate> chosen;
  uint64_t freed = 0;
  policy_->ForEach([&](const UnloadCandidate& candidate) {
    const bool own = std::any_of(request.items.begin(), request.items.end(),
                                 [&](const CoreItem& item) { return item.key == candidate.key; });
    if (!own) {
      chosen.push_back(candidate);
      freed += candidate.bytes;
    }
    return freed < bytes;
  });
  if (freed < bytes) return std::nullopt;
  // A large one at the end can make earlier ones needless: spare those the policy values most.
  std::vector<ResidentKey> victims;
  uint64_t surplus = freed - bytes;
  for (auto candidate = chosen.rbegin(); candidate != chosen.rend(); ++candidate) {
    if (candidate->bytes <= surplus) {
      surplus -= candidate->bytes;
    } else {
      victims.push_back(candidate->key);
    }
  }
  return victims;
}

void CoreImpl::Place(Request& request, Effects& effects) {
  for (CoreItem& item : request.items) {
    std::shared_ptr<Entry>& entry = entries_[item.key];
    if (entry == nullptr) {
      entry = std::make_shared<Entry>();
      entry->key = item.key;
      entry->bytes = item.bytes;
      entry->loader = std::move(item.loader);
      MarkPinned(*entry, pins_.contains(item.key));
      used_ += item.bytes;
      effects.loads.push_back(entry);
    }
    if (entry->leases++ == 0) policy_->Remove(item.key);
    if (entry->loading) {
      entry->waiters.push_back(request.id);
      ++request.loads_open;
    }
    request.entries.push_back(entry);
  }
}

void CoreImpl::Pump(Effects& effects) {
  bool placed = false;
  while (!waiting_.empty()) {
    const Admission admission = TryAdmit(*waiting_.front(), effects);
    if (admission == Admission::kMustWait) break;
    std::unique_ptr<Request> request = std::move(waiting_.front());
    waiting_.pop_front();
    placed = placed || admission == Admission::kAdmitted;
    Settle(std::move(request), admission, effects);
  }
  if (!placed || waiting_.empty()) return;
  // What was placed may be all that others further back were waiting for.
  std::deque<std::unique_ptr<Request>> waiting = std::exchange(waiting_, {});
  waiting_.push_back(std::move(waiting.front()));
  waiting.pop_front();
  for (std::unique_ptr<Request>& request : waiting) {
    const Admission admission =
        MayPass(*request) ? TryAdmit(*request, effects) : Admission::kMustWait;
    Settle(std::move(request), admission, effects);
  }
}

absl::Status CoreImpl::Full(const Request& request) const {
  uint64_t pinned = 0;
  uint64_t leased = 0;
  for (const auto& [key, entry] : entries_) {
    if (entry->pinned) pinned += entry->bytes;
    if (entry->leases > 0) leased += entry->bytes;
  }
  for (const auto& entry : erased_) leased += entry->bytes;
  const uint64_t need = NeedOf(request);
  const uint64_t free = budget_ - std::min(budget_, used_);
  const bool device = tier_ == Tier::kDevice;
  return StoreError(
      absl::StatusCode::kResourceExhausted,
      device ? reason::kDeviceBudgetExceeded : reason::kHostBudgetExceeded,
      absl::StrCat("the ", device ? "device" : "host", " budget of ", budget_, " bytes has ", free,
                   " bytes free, ", need, " are needed; ", pinned, " are pinned and ", leased,
                   " in use; unpin documents, wait, or raise the budget"),
      {{"need_bytes", absl::StrCat(need)},
       {"free_bytes", absl::StrCat(free)},
       {"pinned_bytes", absl::StrCat(pinned)},
       {"leased_bytes", absl::StrCat(leased)},
       {"budget_bytes", absl::StrCat(budget_)}});
}

void CoreImpl::Cancel(AcquireId id) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    std::unique_ptr<Request> request;
    const auto waiting = std::find_if(waiting_.begin(), waiting_.end(),
                                      [id](const auto& other) { return other->id == id; });
    const auto admitted = admitted_.find(id);
    if (waiting != waiting_.end()) {
      request = std::move(*waiting);
      waiting_.erase(waiting);
    } else if (admitted != admitted_.end()) {
      request = std::move(admitted->second);
      admitted_.erase(admitted);
    } else {
      return;
    }
    FailRequest(std::move(request), absl::CancelledError("the request was cancelled"), effects);
    Pump(effects);
  }
  Dispatch(std::move(effects));
}

void CoreImpl::Close() {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    for (std::unique_ptr<Request>& request : std::exchange(waiting_, {})) {
      FailRequest(std::move(request), absl::CancelledError("the daemon is shutting down"), effects);
    }
  }
  for (auto& [callback, result] : effects.completions) callback(std::move(result));
}

}  // namespace docmem::store::internal
