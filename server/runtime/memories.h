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

/// The bridge between stored files and loaded tensors: caches and adapters in the device tier.
/// A file is read once into one buffer that the tensors alias, so an item's bytes are its file's.
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
           Executor* loaders, Metrics* metrics, uint64_t device_budget_bytes,
           std::unique_ptr<store::UnloadPolicy> policy = nullptr);

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

 private:
  struct Loaded {
    std::shared_ptr<const engine::Cache> cache;
    std::shared_ptr<const engine::Adapter> adapter;
  };
  using LoadedCache = store::ResidentCache<Loaded>;

  store::ResidentItem<Loaded> ItemOf(const store::Adapter& adapter) const;
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
