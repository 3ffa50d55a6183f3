#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/resident_cache.h"
#include "adapter_store/sync.h"
#include "engine/engine.h"
#include "server/runtime/executor.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

/// A question's memories, kept loaded while the pointers live.
struct LeasedMemories {
  std::shared_ptr<const engine::Cache> cache;
  std::shared_ptr<const engine::Adapter> adapter;  ///< null: none was asked for
  store::Tier cache_tier = store::Tier::kDisk;     ///< where each was found
  store::Tier adapter_tier = store::Tier::kDisk;
};

/// A loaded or loading item with its owner's names.
struct ResidentMemory {
  store::Resident resident;
  store::DocumentKey document;
  std::string id;  ///< cache id or adapter hash
};

/// The bridge between stored files and loaded tensors: caches and adapters in the device tier.
/// A file is read once into one buffer that the tensors alias, so an item's bytes are its file's.
/// A damaged file is quarantined and `kDataLoss`; a cache of another model is refused.
/// Thread-safe; nothing blocks on a load.
class Memories {
 public:
  using AcquireId = store::AcquireId;
  using Done = absl::AnyInvocable<void(absl::StatusOr<LeasedMemories>)>;

  /// `loaders` runs loads: disk, checksum, decoding. All but `engine` must outlive this.
  Memories(std::shared_ptr<const engine::Engine> engine, store::AdapterStore* store,
           Executor* loaders, Metrics* metrics, uint64_t device_budget_bytes);

  /// Leases a document's cache and, unless null, its adapter: both or none. See
  /// `ResidentCache::Acquire` for when `done` runs and how it fails.
  AcquireId Acquire(const store::DocumentKey& document, const store::Cache& cache,
                    const store::Adapter* adapter, store::WhenFull when_full, Done done);
  void Cancel(AcquireId id) { loaded_.Cancel(id); }

  bool IsLoaded(const store::DocumentKey& document, const store::Cache& cache) const;
  bool IsLoaded(const store::Adapter& adapter) const;

  /// Makes the pins of a document what its row says: default cache and current adapter (null: none)
  /// while it is pinned, else nothing. Doesn't load.
  void SetPins(const store::Document& document, const store::Adapter* current);
  /// After a deletion or replacement: nobody finds these again, their bytes go with the last lease.
  void Forget(const store::DocumentKey& document, const store::Cache& cache);
  void Forget(const store::Adapter& adapter);
  void ForgetPins(const store::DocumentKey& document);

  std::vector<ResidentMemory> Residents() const;
  store::ResidentStats Stats() const { return loaded_.Stats(); }
  uint64_t budget_bytes() const { return loaded_.Stats().budget_bytes; }

 private:
  struct Loaded {
    std::shared_ptr<const engine::Cache> cache;
    std::shared_ptr<const engine::Adapter> adapter;
  };
  using LoadedCache = store::ResidentCache<Loaded>;

  absl::StatusOr<std::unique_ptr<const Loaded>> LoadCache(const store::StoredFile& file) const;
  absl::StatusOr<std::unique_ptr<const Loaded>> LoadAdapter(const store::StoredFile& file) const;
  absl::StatusOr<engine::SharedBytes> Read(const store::StoredFile& file) const;
  absl::StatusOr<std::unique_ptr<const Loaded>> Checked(
      const store::StoredFile& file, absl::Time began,
      absl::StatusOr<std::unique_ptr<const Loaded>> loaded) const;

  const std::shared_ptr<const engine::Engine> engine_;
  store::AdapterStore* const store_;
  Metrics* const metrics_;

  store::Mutex pins_mutex_;
  std::map<std::string, std::vector<store::ResidentKey>> pins_ ABSL_GUARDED_BY(pins_mutex_);

  LoadedCache loaded_;
};

}  // namespace docmem::server
