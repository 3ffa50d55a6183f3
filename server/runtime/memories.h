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
#include "server/runtime/host_files.h"
#include "server/runtime/residency.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

/// A question's memories, kept loaded while the pointers live.
struct LeasedMemories {
  std::shared_ptr<const engine::Cache> cache;
  std::shared_ptr<const engine::Adapter> adapter;  ///< null: none was asked for
  store::Tier cache_tier = store::Tier::kDisk;     ///< where each was found
  store::Tier adapter_tier = store::Tier::kDisk;
};

struct MemoriesOptions {
  uint64_t device_budget_bytes = 0;
  uint64_t host_budget_bytes = 0;  ///< 0: no host tier, as where the device is the CPU
  std::string unload_policy = store::kUnloadPolicies[0].name;
};

/// The bridge between stored files and loaded tensors: caches and adapters in the device tier, in
/// front of the host tier, if there is one. A file is read once into one buffer that the CPU's
/// tensors alias, so an item's bytes are its file's.
/// A damaged file is quarantined and `kDataLoss`; a cache of another model is refused.
/// Thread-safe; nothing blocks on a load.
class Memories : public Residency {
 public:
  using AcquireId = store::AcquireId;
  using Done = absl::AnyInvocable<void(absl::StatusOr<LeasedMemories>)>;
  using AdapterDone =
      absl::AnyInvocable<void(absl::StatusOr<std::shared_ptr<const engine::Adapter>>)>;

  /// `loaders` runs loads: disk, checksum, decoding. All but `engine` must outlive this.
  Memories(std::shared_ptr<const engine::Engine> engine, store::AdapterStore* store,
           Executor* loaders, Metrics* metrics, const MemoriesOptions& options);

  /// Leases a document's cache and, unless null, its adapter: both or none. See
  /// `ResidentCache::Acquire` for when `done` runs and how it fails.
  AcquireId Acquire(const store::DocumentKey& document, const store::Cache& cache,
                    const store::Adapter* adapter, store::WhenFull when_full, Done done);
  /// An adapter alone, kept loaded while the pointer lives.
  AcquireId AcquireAdapter(const store::Adapter& adapter, store::WhenFull when_full,
                           AdapterDone done);
  void Cancel(AcquireId id) { loaded_.Cancel(id); }

  void SetPins(const store::Document& document, const store::Adapter* current) override;
  void Forget(const store::DocumentKey& document, const store::Cache& cache) override;
  void Forget(const store::Adapter& adapter) override;
  void ForgetDocument(const store::DocumentKey& document) override;
  void Prefetch(const store::DocumentKey& document, const store::Cache& cache,
                const store::Adapter* adapter,
                absl::AnyInvocable<void(absl::Status)> done) override;
  bool IsLoaded(const store::DocumentKey& document, const store::Cache& cache) const override;
  bool IsLoaded(const store::Adapter& adapter) const override;
  std::vector<ResidentMemory> Residents() const override;
  store::ResidentStats Stats() const override { return loaded_.Stats(); }
  std::optional<store::ResidentStats> HostStats() const override;

 private:
  struct Loaded {
    std::shared_ptr<const engine::Cache> cache;
    std::shared_ptr<const engine::Adapter> adapter;
  };
  using LoadedCache = store::ResidentCache<Loaded>;

  // Where its bytes would come from, and what they occupy once loaded.
  store::ResidentItem<Loaded> ItemOf(store::ResidentKey key, const store::StoredFile& file) const;
  absl::StatusOr<std::unique_ptr<const Loaded>> Load(const store::ResidentKey& key,
                                                     const store::StoredFile& file) const;
  absl::StatusOr<engine::SharedBytes> Read(const store::ResidentKey& key,
                                           const store::StoredFile& file) const;
  absl::StatusOr<engine::SharedBytes> ReadFromDisk(const store::StoredFile& file) const;
  store::Tier SourceOf(const store::ResidentKey& key) const;
  uint64_t BytesOf(const store::StoredFile& file) const;
  void Erase(const store::ResidentKey& key);

  const std::shared_ptr<const engine::Engine> engine_;
  store::AdapterStore* const store_;
  Metrics* const metrics_;

  store::Mutex pins_mutex_;
  std::map<std::string, std::vector<store::ResidentKey>> pins_ ABSL_GUARDED_BY(pins_mutex_);

  const std::unique_ptr<HostFiles> host_;
  LoadedCache loaded_;
};

}  // namespace docmem::server
