#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "adapter_store/unload_policy.h"

namespace docmem::store {

/// Slowest first. On a CPU the device tier is RAM and there is no host tier.
enum class Tier { kDisk, kHost, kDevice };

/// What a request does when only leases of others keep its items out.
enum class WhenFull { kWait, kFail };

using AcquireId = uint64_t;

struct ResidentCacheOptions {
  Tier tier = Tier::kDevice;
  uint64_t budget_bytes = 0;
  /// Runs a task on some thread, later or at once; must not drop it. Required.
  std::function<void(absl::AnyInvocable<void()>)> executor;
  std::unique_ptr<UnloadPolicy> policy;  ///< default: least recently used
  /// How long resident items may be leased past a request that waits for bytes; pinned ones always.
  absl::Duration patience = absl::Seconds(1);
  std::function<absl::Time()> clock = absl::Now;
};

/// One loaded or loading item.
struct Resident {
  ResidentKey key;
  Tier tier = Tier::kDevice;
  uint64_t bytes = 0;
  uint32_t leases = 0;
  bool pinned = false;
  bool loading = false;
};

struct ResidentKindStats {
  uint64_t resident_bytes = 0;  ///< loaded, erased but still leased items included
  uint64_t pinned_bytes = 0;    ///< of those, here and below
  uint64_t leased_bytes = 0;
  uint64_t loading_bytes = 0;  ///< reserved for loads that wait for the executor or run
  uint64_t resident_items = 0;
  uint64_t lookups = 0;  ///< items asked for
  uint64_t hits = 0;     ///< of those, loaded at that moment
  uint64_t loads_ok = 0;
  uint64_t loads_failed = 0;
  uint64_t unloads_for_room = 0;
  uint64_t unloads_erased = 0;
  uint64_t unloads_idle = 0;  ///< by `UnloadIdle`
};

struct ResidentStats {
  uint64_t budget_bytes = 0;
  uint64_t used_bytes = 0;  ///< resident and loading, both kinds
  uint64_t waiting_requests = 0;
  std::array<ResidentKindStats, kResidentKinds> kinds;  ///< by `ResidentKind`
};

namespace internal {

struct Entry;
class Core;

using CoreLoader = std::function<absl::StatusOr<std::shared_ptr<const void>>()>;

/// `Lease` without its type.
class CoreLease {
 public:
  CoreLease() = default;
  CoreLease(std::shared_ptr<Core> core, std::shared_ptr<Entry> entry, Tier found_in);
  CoreLease(CoreLease&&) noexcept = default;
  CoreLease& operator=(CoreLease&& other) noexcept;
  ~CoreLease();
  const void* value() const;  ///< null when empty or moved from
  const ResidentKey& key() const;
  uint64_t bytes() const;
  Tier found_in() const { return found_in_; }

 private:
  void End();
  std::shared_ptr<Core> core_;
  std::shared_ptr<Entry> entry_;
  Tier found_in_ = Tier::kDevice;
};

struct CoreItem {
  ResidentKey key;
  uint64_t bytes = 0;
  Tier source = Tier::kDisk;
  CoreLoader loader;
};

using CoreDone = absl::AnyInvocable<void(absl::StatusOr<std::vector<CoreLease>>)>;

/// `ResidentCache` without its type; its contract is there.
class Core {
 public:
  virtual ~Core() = default;
  virtual AcquireId Acquire(std::vector<CoreItem> items, WhenFull when_full, CoreDone done) = 0;
  virtual void Cancel(AcquireId id) = 0;
  virtual void Repin(const std::vector<ResidentKey>& unpin,
                     const std::vector<ResidentKey>& pin) = 0;
  virtual void Erase(const ResidentKey& key) = 0;
  virtual void UnloadIdle() = 0;
  virtual bool IsResident(const ResidentKey& key) const = 0;
  virtual std::vector<Resident> Residents() const = 0;
  virtual ResidentStats Stats() const = 0;
  virtual void Close() = 0;
  /// Called by `CoreLease` only.
  virtual void EndLease(std::shared_ptr<Entry> entry) = 0;
};

std::shared_ptr<Core> MakeCore(ResidentCacheOptions options);

}  // namespace internal
}  // namespace docmem::store
