#include <utility>

#include "adapter_store/resident_core_impl.h"

namespace docmem::store::internal {

void CoreImpl::Load(const std::shared_ptr<Entry>& entry) {
  if (!BeginLoad(*entry)) return;
  const absl::Time begin = clock_();
  absl::StatusOr<std::shared_ptr<const void>> value = entry->loader();
  Loaded(entry, std::move(value), clock_() - begin);
}

// A load that nobody waits for any more isn't begun.
bool CoreImpl::BeginLoad(Entry& entry) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    if (entry.leases > 0 || entry.pinned) return true;
    entry.loading = false;
    Forget(entry);
    Drop(entry, effects);
    Pump(effects);
  }
  Dispatch(std::move(effects));
  return false;
}

void CoreImpl::Loaded(const std::shared_ptr<Entry>& entry,
                      absl::StatusOr<std::shared_ptr<const void>> value, absl::Duration time) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    entry->loading = false;
    entry->load_time = time;
    entry->loader = nullptr;
    ResidentKindStats& stats = StatsOf(*entry);
    const absl::Status status = value.status();
    ++(status.ok() ? stats.loads_ok : stats.loads_failed);
    if (status.ok()) entry->value = *std::move(value);
    if (!status.ok()) Forget(*entry);
    ++entry->leases;  // keeps it through the loop
    for (const AcquireId id : std::exchange(entry->waiters, {})) {
      const auto found = admitted_.find(id);
      if (found == admitted_.end()) continue;
      if (status.ok() && --found->second->loads_open > 0) continue;
      std::unique_ptr<Request> request = std::move(found->second);
      admitted_.erase(found);
      if (status.ok()) {
        Complete(std::move(request), effects);
      } else {
        FailRequest(std::move(request), status, effects);
      }
    }
    Unlease(*entry, effects);
    Pump(effects);
  }
  Dispatch(std::move(effects));
}

void CoreImpl::Complete(std::unique_ptr<Request> request, Effects& effects) {
  std::vector<CoreLease> leases;
  leases.reserve(request->entries.size());
  for (size_t i = 0; i < request->entries.size(); ++i) {
    leases.emplace_back(shared_from_this(), std::move(request->entries[i]), request->found_in[i]);
  }
  effects.completions.emplace_back(std::move(request->done), std::move(leases));
}

void CoreImpl::FailRequest(std::unique_ptr<Request> request, const absl::Status& status,
                           Effects& effects) {
  for (const std::shared_ptr<Entry>& entry : request->entries) {
    std::erase(entry->waiters, request->id);
    Unlease(*entry, effects);
  }
  effects.completions.emplace_back(std::move(request->done), status);
}

void CoreImpl::Unlease(Entry& entry, Effects& effects) {
  if (--entry.leases > 0 || entry.loading) return;
  if (entry.erased) {
    Drop(entry, effects);
  } else {
    OfferToPolicy(entry);
  }
}

void CoreImpl::Drop(Entry& entry, Effects& effects) {
  const bool loaded = entry.value != nullptr;
  if (loaded) {
    effects.dropped.push_back(std::move(entry.value));
    effects.dropped_bytes += entry.bytes;
  } else {
    used_ -= entry.bytes;
  }
  if (!entry.erased) return;
  if (loaded) ++StatsOf(entry).unloads_erased;
  for (auto found = erased_.begin(); found != erased_.end(); ++found) {
    if (found->get() != &entry) continue;
    erased_.erase(found);
    return;
  }
}

void CoreImpl::MarkPinned(Entry& entry, bool pinned) {
  if (entry.pinned == pinned) return;
  entry.pinned = pinned;
  pinned_bytes_ = pinned ? pinned_bytes_ + entry.bytes : pinned_bytes_ - entry.bytes;
}

void CoreImpl::OfferToPolicy(const Entry& entry) {
  if (!entry.pinned) policy_->Add({entry.key, entry.bytes, entry.load_time});
}

// Nobody finds the entry any more; it ends as if it had been erased.
void CoreImpl::Forget(Entry& entry) {
  if (entry.erased) return;
  MarkPinned(entry, false);
  const auto found = entries_.find(entry.key);
  entry.erased = true;
  erased_.insert(found->second);
  entries_.erase(found);
}

void CoreImpl::Repin(const std::vector<ResidentKey>& unpin, const std::vector<ResidentKey>& pin) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    for (const ResidentKey& key : unpin) SetPinned(key, false);
    for (const ResidentKey& key : pin) SetPinned(key, true);
    Pump(effects);
  }
  Dispatch(std::move(effects));
}

void CoreImpl::SetPinned(const ResidentKey& key, bool pinned) {
  if (pinned) {
    pins_.insert(key);
  } else {
    pins_.erase(key);
  }
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second->pinned == pinned) return;
  Entry& entry = *found->second;
  MarkPinned(entry, pinned);
  if (entry.leases > 0 || entry.loading) return;
  if (pinned) policy_->Remove(key);
  OfferToPolicy(entry);
}

void CoreImpl::Erase(const ResidentKey& key) {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    pins_.erase(key);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    const std::shared_ptr<Entry> entry = found->second;
    policy_->Remove(key);
    Forget(*entry);
    if (entry->leases == 0 && !entry->loading) Drop(*entry, effects);
    Pump(effects);
  }
  Dispatch(std::move(effects));
}

void CoreImpl::UnloadIdle() {
  Effects effects;
  {
    MutexLock lock(&mutex_);
    std::vector<ResidentKey> keys;
    policy_->ForEach([&](const UnloadCandidate& candidate) {
      keys.push_back(candidate.key);
      return true;
    });
    for (const ResidentKey& key : keys) {
      const std::shared_ptr<Entry> entry = entries_.at(key);
      policy_->Unload(key);
      ++StatsOf(*entry).unloads_idle;
      entries_.erase(key);
      Drop(*entry, effects);
    }
    Pump(effects);
  }
  Dispatch(std::move(effects));
}

void CoreImpl::EndLease(std::shared_ptr<Entry> entry) {
  Effects effects;
  bool closed = false;
  {
    MutexLock lock(&mutex_);
    closed = closed_;
    Unlease(*entry, effects);
    if (!waiting_.empty()) Pump(effects);
  }
  // The executor may be gone by then; nothing but values can be left to do.
  if (closed) {
    DestroyDropped(effects);
  } else {
    Dispatch(std::move(effects));
  }
}

// One task: memory is given back first, then used again.
void CoreImpl::Dispatch(Effects effects) {
  if (effects.empty()) return;
  auto shared = std::make_unique<Effects>(std::move(effects));
  executor_([self = shared_from_this(), work = std::move(shared)]() mutable {
    self->DestroyDropped(*work);
    for (size_t i = 1; i < work->loads.size(); ++i) {
      self->executor_([self, entry = work->loads[i]] { self->Load(entry); });
    }
    for (auto& [callback, result] : work->completions) callback(std::move(result));
    work->completions.clear();
    if (!work->loads.empty()) self->Load(work->loads.front());
  });
}

void CoreImpl::DestroyDropped(Effects& effects) {
  if (effects.dropped.empty()) return;
  effects.dropped.clear();
  Effects next;
  {
    MutexLock lock(&mutex_);
    used_ -= std::exchange(effects.dropped_bytes, 0);
    if (!waiting_.empty()) Pump(next);
  }
  Dispatch(std::move(next));
}

}  // namespace docmem::store::internal
