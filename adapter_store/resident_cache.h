#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "adapter_store/resident_core.h"
#include "adapter_store/unload_policy.h"

namespace docmem::store {

/// Keeps an item loaded while it lives. Move-only; may outlive the cache; end it on any thread.
template <class Value>
class Lease {
 public:
  Lease() = default;
  explicit Lease(internal::CoreLease core) : core_(std::move(core)) {}
  const Value& operator*() const { return *static_cast<const Value*>(core_.value()); }
  const Value* operator->() const { return &**this; }
  explicit operator bool() const { return core_.value() != nullptr; }
  const ResidentKey& key() const { return core_.key(); }
  uint64_t bytes() const { return core_.bytes(); }
  /// Where the item was when it was asked for: the cache's own tier, or the one it came from.
  Tier found_in() const { return core_.found_in(); }

 private:
  internal::CoreLease core_;
};

/// One item to lease.
template <class Value>
struct ResidentItem {
  ResidentKey key;
  uint64_t bytes = 0;  ///< what it will occupy, padding included; reserved before the load begins
  Tier source = Tier::kDisk;  ///< where the loader takes it from
  /// Runs on the executor, at most once at a time for a key; doesn't throw.
  std::function<absl::StatusOr<std::unique_ptr<const Value>>()> loader;
};

/// One tier of loaded caches and adapters under one byte budget: single-flight loads, leases, pins,
/// unloading. A faster tier in front of a slower one is two of these, the loader of the first
/// leasing from the second. Knows neither files nor registry. `Value` is const once loaded.
///
/// Thread-safe, never blocks on a load; callbacks and destructors of values run without its lock.
/// Guarantees: a leased or pinned item is never unloaded; bytes (loaded, loading and reserved)
/// never exceed the budget; an item is unloaded only when its bytes are needed for an admission
/// that then succeeds; requests that need bytes are admitted in their order, and requests whose
/// items are all here overtake them only for `Options::patience`, or where all are pinned, so
/// nobody starves.
template <class Value>
class ResidentCache {
 public:
  using Leases = std::vector<Lease<Value>>;
  using Done = absl::AnyInvocable<void(absl::StatusOr<Leases>)>;
  using Options = ResidentCacheOptions;

  explicit ResidentCache(Options options) : core_(internal::MakeCore(std::move(options))) {}
  /// Waiting requests end CANCELLED; loads that run end on the executor; leases stay valid.
  ~ResidentCache() { core_->Close(); }
  ResidentCache(const ResidentCache&) = delete;
  ResidentCache& operator=(const ResidentCache&) = delete;

  /// Leases all items or none, in their order; distinct keys. `done` runs exactly once: inside this
  /// call when all is here or when it fails at once, else on the executor. It ends with
  /// RESOURCE_EXHAUSTED naming need, free, pinned and leased bytes when the items can't fit beside
  /// what is pinned (or, with `kFail`, not now), CANCELLED after `Cancel`, or the loader's error.
  /// The result names the request for `Cancel`.
  AcquireId Acquire(std::vector<ResidentItem<Value>> items, WhenFull when_full, Done done) {
    std::vector<internal::CoreItem> core_items;
    core_items.reserve(items.size());
    for (ResidentItem<Value>& item : items) {
      core_items.push_back(
          {std::move(item.key), item.bytes, item.source, Untyped(std::move(item.loader))});
    }
    return core_->Acquire(
        std::move(core_items), when_full,
        [done = std::move(done)](absl::StatusOr<std::vector<internal::CoreLease>> leases) mutable {
          if (!leases.ok()) return done(leases.status());
          Leases typed;
          typed.reserve(leases->size());
          for (internal::CoreLease& lease : *leases) {
            typed.emplace_back(std::move(lease));
          }
          done(std::move(typed));
        });
  }

  /// Ends a waiting request; no effect when `done` has run or is about to. A load that runs goes on
  /// and its item stays.
  void Cancel(AcquireId id) { core_->Cancel(id); }

  /// A wish that holds also for a later load of the key. False: as any other again.
  void SetPinned(const ResidentKey& key, bool pinned) {
    pinned ? core_->Repin({}, {key}) : core_->Repin({key}, {});
  }
  /// Both at once: a key in both lists stays pinned throughout, and no request is admitted or
  /// refused by the pins in between.
  void Repin(const std::vector<ResidentKey>& unpin, const std::vector<ResidentKey>& pin) {
    core_->Repin(unpin, pin);
  }

  /// Forgets the key and its pin: nobody finds it again, a running load's waiters still get it,
  /// and its bytes are free when the last lease ends.
  void Erase(const ResidentKey& key) { core_->Erase(key); }

  /// Unloads what has neither lease nor pin.
  void UnloadIdle() { core_->UnloadIdle(); }

  bool IsResident(const ResidentKey& key) const { return core_->IsResident(key); }
  std::vector<Resident> Residents() const { return core_->Residents(); }
  ResidentStats Stats() const { return core_->Stats(); }

 private:
  using Loader = std::function<absl::StatusOr<std::unique_ptr<const Value>>()>;
  static internal::CoreLoader Untyped(Loader loader) {
    return [loader = std::move(loader)]() -> absl::StatusOr<std::shared_ptr<const void>> {
      absl::StatusOr<std::unique_ptr<const Value>> value = loader();
      if (!value.ok()) return value.status();
      return std::shared_ptr<const Value>(*std::move(value));
    };
  }

  const std::shared_ptr<internal::Core> core_;
};

}  // namespace docmem::store
