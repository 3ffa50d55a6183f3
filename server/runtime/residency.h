#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "adapter_store/resident_core.h"
#include "adapter_store/types.h"

namespace docmem::server {

/// A loaded or loading item with its owner's names.
struct ResidentMemory {
  store::Resident resident;
  store::DocumentKey document;
  std::string id;  ///< cache id or adapter hash
};

/// Where a document's memories are: what the services may ask of `Memories` without knowing
/// tensors. Thread-safe; nothing blocks on a load.
class Residency {
 public:
  virtual ~Residency() = default;

  /// Makes the pins of a document what its row says: default cache and current adapter (null: none)
  /// while it is pinned, else nothing. Doesn't load.
  virtual void SetPins(const store::Document& document, const store::Adapter* current) = 0;
  /// After a deletion or replacement: nobody finds these again, their bytes go with the last lease.
  virtual void Forget(const store::DocumentKey& document, const store::Cache& cache) = 0;
  virtual void Forget(const store::Adapter& adapter) = 0;
  /// All of a document's memories and its pins.
  virtual void ForgetDocument(const store::DocumentKey& document) = 0;

  /// Loads a cache and, unless null, an adapter, and gives the lease back at once. `done` runs
  /// exactly once, inside this call when both are here already. RESOURCE_EXHAUSTED when they don't
  /// fit beside what is pinned and leased.
  virtual void Prefetch(const store::DocumentKey& document, const store::Cache& cache,
                        const store::Adapter* adapter,
                        absl::AnyInvocable<void(absl::Status)> done) = 0;
  virtual bool IsLoaded(const store::DocumentKey& document, const store::Cache& cache) const = 0;
  virtual bool IsLoaded(const store::Adapter& adapter) const = 0;

  virtual std::vector<ResidentMemory> Residents() const = 0;
  /// Of the device tier.
  virtual store::ResidentStats Stats() const = 0;
  /// Nothing where there is no host tier.
  virtual std::optional<store::ResidentStats> HostStats() const { return std::nullopt; }
};

}  // namespace docmem::server
