#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "adapter_store/resident_core.h"
#include "adapter_store/sync.h"

namespace docmem::store::internal {

/// Guarded by the core's mutex, but for what never changes (key, bytes) and `value`, which doesn't
/// change while there is a lease.
struct Entry {
  ResidentKey key;
  uint64_t bytes = 0;
  CoreLoader loader;
  std::shared_ptr<const void> value;
  absl::Duration load_time;
  uint32_t leases = 0;  // those of admitted requests included
  bool pinned = false;
  bool loading = true;
  bool erased = false;
  std::vector<AcquireId> waiters;
};

using Completion = std::pair<CoreDone, absl::StatusOr<std::vector<CoreLease>>>;

struct Request {
  AcquireId id = 0;
  std::vector<CoreItem> items;
  WhenFull when_full = WhenFull::kWait;
  CoreDone done;
  absl::Time arrived;
  std::vector<Tier> found_in;
  std::vector<std::shared_ptr<Entry>> entries;  // leased for it once admitted
  size_t loads_open = 0;
};

/// What has to happen outside the lock.
struct Effects {
  std::vector<std::shared_ptr<const void>> dropped;
  uint64_t dropped_bytes = 0;  // free once `dropped` is destroyed
  std::vector<Completion> completions;
  std::vector<std::shared_ptr<Entry>> loads;
  bool empty() const { return dropped.empty() && completions.empty() && loads.empty(); }
};

enum class Admission { kAdmitted, kMustWait, kNever };

/// The one implementation of `Core`. Sources: resident_admission.cc (who gets in, in which order,
/// and what goes for it), resident_loads.cc (loads, leases, pins, unloading), resident_core.cc.
class CoreImpl : public Core, public std::enable_shared_from_this<CoreImpl> {
 public:
  explicit CoreImpl(ResidentCacheOptions options)
      : tier_(options.tier),
        budget_(options.budget_bytes),
        patience_(options.patience),
        executor_(std::move(options.executor)),
        clock_(std::move(options.clock)),
        policy_(options.policy != nullptr ? std::move(options.policy) : MakeLruPolicy()) {}

  AcquireId Acquire(std::vector<CoreItem> items, WhenFull when_full, CoreDone done) override;
  void Cancel(AcquireId id) override;
  void Repin(const std::vector<ResidentKey>& unpin, const std::vector<ResidentKey>& pin) override;
  void Erase(const ResidentKey& key) override;
  void UnloadIdle() override;
  bool IsResident(const ResidentKey& key) const override;
  std::vector<Resident> Residents() const override;
  ResidentStats Stats() const override;
  void Close() override;
  void EndLease(std::shared_ptr<Entry> entry) override;

 private:
  // Admission.
  Admission TryAdmit(Request& request, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t NeedOf(const Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FitsBesidePins(const Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayPass(const Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<std::vector<ResidentKey>> ChooseVictims(uint64_t bytes,
                                                        const Request& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Place(Request& request, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pump(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(std::unique_ptr<Request> request, Admission admission, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Full(const Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Loads and leases.
  void Load(const std::shared_ptr<Entry>& entry);
  bool BeginLoad(Entry& entry);
  void Loaded(const std::shared_ptr<Entry>& entry,
              absl::StatusOr<std::shared_ptr<const void>> value, absl::Duration time);
  void Complete(std::unique_ptr<Request> request, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailRequest(std::unique_ptr<Request> request, const absl::Status& status, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlease(Entry& entry, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Entry& entry, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OfferToPolicy(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetPinned(const ResidentKey& key, bool pinned) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkPinned(Entry& entry, bool pinned) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Dispatch(Effects effects);
  void DestroyDropped(Effects& effects);
  ResidentKindStats& StatsOf(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stats_[static_cast<size_t>(entry.key.kind)];
  }

  const Tier tier_;
  const uint64_t budget_;
  const absl::Duration patience_;
  const std::function<void(absl::AnyInvocable<void()>)> executor_;
  const std::function<absl::Time()> clock_;

  mutable Mutex mutex_;
  const std::unique_ptr<UnloadPolicy> policy_ ABSL_PT_GUARDED_BY(mutex_);
  absl::flat_hash_map<ResidentKey, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<ResidentKey> pins_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<Request>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<AcquireId, std::unique_ptr<Request>> admitted_ ABSL_GUARDED_BY(mutex_);
  // Counters of what happened; the byte gauges are added up when asked for.
  std::array<ResidentKindStats, kResidentKinds> stats_ ABSL_GUARDED_BY(mutex_);
  // Leased items that were erased: their bytes count until the last lease ends.
  absl::flat_hash_set<std::shared_ptr<Entry>> erased_ ABSL_GUARDED_BY(mutex_);
  uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t pinned_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of entries that can be found
  AcquireId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::store::internal
