#include "server/runtime/memories.h"

#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "engine/kernels/huge_buffer.h"
#include "server/errors/from_exception.h"

namespace docmem::server {
namespace {

// Ids never hold a slash, so a key names file and owner and can be taken apart again.
store::ResidentKey KeyOf(store::ResidentKind kind, const store::DocumentKey& document,
                         const std::string& id, const store::StoredFile& file) {
  return {kind, absl::StrCat(file.id, "/", document.collection, "/", document.id, "/", id)};
}

store::ResidentKey KeyOf(const store::DocumentKey& document, const store::Cache& cache) {
  return KeyOf(store::ResidentKind::kCache, document, cache.spec.id, cache.file);
}

store::ResidentKey KeyOf(const store::Adapter& adapter) {
  return KeyOf(store::ResidentKind::kAdapter, adapter.document, adapter.spec.hash, adapter.packed);
}

std::string PinName(const store::DocumentKey& key) {
  return absl::StrCat(key.collection, "/", key.id);
}

// What the lease holds, with the lease as its owner and nothing else.
template <class Loaded, class Item>
std::shared_ptr<const Item> Share(store::Lease<Loaded> lease,
                                  std::shared_ptr<const Item> Loaded::* member) {
  auto owner = std::make_shared<const store::Lease<Loaded>>(std::move(lease));
  const Item* const item = ((**owner).*member).get();
  return {std::move(owner), item};
}

}  // namespace

Memories::Memories(std::shared_ptr<const engine::Engine> engine, store::AdapterStore* store,
                   Executor* loaders, Metrics* metrics, uint64_t device_budget_bytes,
                   std::unique_ptr<store::UnloadPolicy> policy)
    : engine_(std::move(engine)),
      store_(store),
      metrics_(metrics),
      loaded_({.tier = store::Tier::kDevice,
               .budget_bytes = device_budget_bytes,
               .executor = [loaders](Executor::Task task) { loaders->Run(std::move(task)); },
               .policy = std::move(policy)}) {}

Memories::AcquireId Memories::Acquire(const store::DocumentKey& document, const store::Cache& cache,
                                      const store::Adapter* adapter, store::WhenFull when_full,
                                      Done done) {
  std::vector<store::ResidentItem<Loaded>> items;
  items.push_back({.key = KeyOf(document, cache),
                   .bytes = engine::HugeBuffer::SizeFor(cache.file.bytes),
                   .loader = [this, file = cache.file] { return LoadCache(file); }});
  if (adapter != nullptr) items.push_back(ItemOf(*adapter));
  return loaded_.Acquire(
      std::move(items), when_full,
      [done = std::move(done)](absl::StatusOr<LoadedCache::Leases> leases) mutable {
        if (!leases.ok()) return done(leases.status());
        LeasedMemories memories;
        memories.cache_tier = (*leases)[0].found_in();
        memories.cache = Share(std::move((*leases)[0]), &Loaded::cache);
        if (leases->size() > 1) {
          memories.adapter_tier = (*leases)[1].found_in();
          memories.adapter = Share(std::move((*leases)[1]), &Loaded::adapter);
        }
        done(std::move(memories));
      });
}

Memories::AcquireId Memories::AcquireAdapter(const store::Adapter& adapter,
                                             store::WhenFull when_full, AdapterDone done) {
  std::vector<store::ResidentItem<Loaded>> items;
  items.push_back(ItemOf(adapter));
  return loaded_.Acquire(
      std::move(items), when_full,
      [done = std::move(done)](absl::StatusOr<LoadedCache::Leases> leases) mutable {
        if (!leases.ok()) return done(leases.status());
        done(Share(std::move((*leases)[0]), &Loaded::adapter));
      });
}

store::ResidentItem<Memories::Loaded> Memories::ItemOf(const store::Adapter& adapter) const {
  return {.key = KeyOf(adapter),
          .bytes = engine::HugeBuffer::SizeFor(adapter.packed.bytes),
          .loader = [this, file = adapter.packed] { return LoadAdapter(file); }};
}

void Memories::Prefetch(const store::DocumentKey& document, const store::Cache& cache,
                        const store::Adapter* adapter,
                        absl::AnyInvocable<void(absl::Status)> done) {
  Acquire(document, cache, adapter, store::WhenFull::kFail,
          [done = std::move(done)](absl::StatusOr<LeasedMemories> memories) mutable {
            const absl::Status status = memories.status();
            memories = absl::CancelledError("the lease is given back");
            done(status);
          });
}

bool Memories::IsLoaded(const store::DocumentKey& document, const store::Cache& cache) const {
  return loaded_.IsResident(KeyOf(document, cache));
}

bool Memories::IsLoaded(const store::Adapter& adapter) const {
  return loaded_.IsResident(KeyOf(adapter));
}

void Memories::SetPins(const store::Document& document, const store::Adapter* current) {
  std::vector<store::ResidentKey> wanted;
  if (document.spec.pinned) {
    for (const store::Cache& cache : document.caches) {
      if (cache.spec.id == document.default_cache_id) wanted.push_back(KeyOf(document.key, cache));
    }
    if (current != nullptr) wanted.push_back(KeyOf(*current));
  }
  store::MutexLock lock(&pins_mutex_);
  std::vector<store::ResidentKey>& pinned = pins_[PinName(document.key)];
  for (const store::ResidentKey& key : pinned) loaded_.SetPinned(key, false);
  for (const store::ResidentKey& key : wanted) loaded_.SetPinned(key, true);
  pinned = std::move(wanted);
  if (pinned.empty()) pins_.erase(PinName(document.key));
}

void Memories::ForgetDocument(const store::DocumentKey& document) {
  {
    store::MutexLock lock(&pins_mutex_);
    if (const auto it = pins_.find(PinName(document)); it != pins_.end()) {
      for (const store::ResidentKey& key : it->second) loaded_.SetPinned(key, false);
      pins_.erase(it);
    }
  }
  for (const ResidentMemory& memory : Residents()) {
    if (memory.document == document) loaded_.Erase(memory.resident.key);
  }
}

void Memories::Forget(const store::DocumentKey& document, const store::Cache& cache) {
  loaded_.Erase(KeyOf(document, cache));
}

void Memories::Forget(const store::Adapter& adapter) { loaded_.Erase(KeyOf(adapter)); }

std::vector<ResidentMemory> Memories::Residents() const {
  std::vector<ResidentMemory> memories;
  for (store::Resident& resident : loaded_.Residents()) {
    const std::vector<std::string> parts = absl::StrSplit(resident.key.id, '/');
    memories.push_back({std::move(resident), {parts[1], parts[2]}, parts[3]});
  }
  return memories;
}

absl::StatusOr<engine::SharedBytes> Memories::Read(const store::StoredFile& file) const {
  const auto buffer = [&]() -> std::shared_ptr<engine::HugeBuffer> {
    try {
      return std::make_shared<engine::HugeBuffer>(file.bytes);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }();
  if (buffer == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a file of ", file.bytes, " bytes; lower --device-budget"));
  }
  // The payload is aligned to 64 in the file, and so are the tensors that alias it here.
  const std::span<std::byte> bytes(buffer->Take(file.bytes), file.bytes);
  if (absl::Status status = store_->ReadFile(file, bytes); !status.ok()) return status;
  return engine::SharedBytes{buffer, bytes};
}

absl::StatusOr<std::unique_ptr<const Memories::Loaded>> Memories::LoadCache(
    const store::StoredFile& file) const {
  const absl::Time began = absl::Now();
  absl::StatusOr<engine::SharedBytes> bytes = Read(file);
  if (!bytes.ok()) return bytes.status();
  return Checked(file, began, CatchEngine([&] {
                   return std::make_unique<const Loaded>(
                       Loaded{engine_->LoadCache(*std::move(bytes)), nullptr});
                 }));
}

absl::StatusOr<std::unique_ptr<const Memories::Loaded>> Memories::LoadAdapter(
    const store::StoredFile& file) const {
  const absl::Time began = absl::Now();
  absl::StatusOr<engine::SharedBytes> bytes = Read(file);
  if (!bytes.ok()) return bytes.status();
  return Checked(file, began, CatchEngine([&] {
                   return std::make_unique<const Loaded>(
                       Loaded{nullptr, engine_->LoadAdapter(*std::move(bytes))});
                 }));
}

absl::StatusOr<std::unique_ptr<const Memories::Loaded>> Memories::Checked(
    const store::StoredFile& file, absl::Time began,
    absl::StatusOr<std::unique_ptr<const Loaded>> loaded) const {
  if (loaded.ok()) metrics_->LoadFinished(store::Tier::kDisk, absl::Now() - began);
  if (!absl::IsDataLoss(loaded.status())) return loaded;
  const absl::Status quarantined = store_->Quarantine(file, std::string(loaded.status().message()));
  if (!quarantined.ok()) return quarantined;
  return loaded;
}

}  // namespace docmem::server
