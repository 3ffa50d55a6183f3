#include "server/runtime/memories.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "engine/artifacts/file_buffer.h"
#include "engine/model/transformer.h"
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
                   Executor* loaders, Metrics* metrics, const MemoriesOptions& options)
    : engine_(std::move(engine)),
      store_(store),
      metrics_(metrics),
      host_(options.host_budget_bytes == 0
                ? nullptr
                : std::make_unique<HostFiles>(options.host_budget_bytes,
                                              store::MakeUnloadPolicy(options.unload_policy))),
      loaded_({.tier = store::Tier::kDevice,
               .budget_bytes = options.device_budget_bytes,
               .executor = [loaders](Executor::Task task) { loaders->Run(std::move(task)); },
               .policy = store::MakeUnloadPolicy(options.unload_policy)}) {}

Memories::AcquireId Memories::Acquire(const store::DocumentKey& document, const store::Cache& cache,
                                      const store::Adapter* adapter, store::WhenFull when_full,
                                      Done done) {
  std::vector<store::ResidentItem<Loaded>> items;
  items.push_back(ItemOf(KeyOf(document, cache), cache.file));
  if (adapter != nullptr) items.push_back(ItemOf(KeyOf(*adapter), adapter->packed));
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
  items.push_back(ItemOf(KeyOf(adapter), adapter.packed));
  return loaded_.Acquire(
      std::move(items), when_full,
      [done = std::move(done)](absl::StatusOr<LoadedCache::Leases> leases) mutable {
        if (!leases.ok()) return done(leases.status());
        done(Share(std::move((*leases)[0]), &Loaded::adapter));
      });
}

store::ResidentItem<Memories::Loaded> Memories::ItemOf(store::ResidentKey key,
                                                       const store::StoredFile& file) const {
  store::ResidentItem<Loaded> item;
  item.bytes = BytesOf(file);
  item.source = SourceOf(key);
  item.loader = [this, key, file] { return Load(key, file); };
  item.key = std::move(key);
  return item;
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
  loaded_.Repin(pinned, wanted);
  pinned = std::move(wanted);
  if (pinned.empty()) pins_.erase(PinName(document.key));
}

void Memories::ForgetDocument(const store::DocumentKey& document) {
  {
    store::MutexLock lock(&pins_mutex_);
    if (const auto it = pins_.find(PinName(document)); it != pins_.end()) {
      loaded_.Repin(it->second, {});
      pins_.erase(it);
    }
  }
  for (const ResidentMemory& memory : Residents()) {
    if (memory.document == document) Erase(memory.resident.key);
  }
}

void Memories::Forget(const store::DocumentKey& document, const store::Cache& cache) {
  Erase(KeyOf(document, cache));
}

void Memories::Forget(const store::Adapter& adapter) { Erase(KeyOf(adapter)); }

// The host's first: a load that finds nothing there reads the disk, where the file is gone too.
void Memories::Erase(const store::ResidentKey& key) {
  if (host_ != nullptr) host_->Erase(key);
  loaded_.Erase(key);
}

std::optional<store::ResidentStats> Memories::HostStats() const {
  if (host_ == nullptr) return std::nullopt;
  return host_->Stats();
}

std::vector<ResidentMemory> Memories::Residents() const {
  std::vector<store::Resident> residents = loaded_.Residents();
  if (host_ != nullptr) {
    for (store::Resident& resident : host_->Residents()) residents.push_back(std::move(resident));
  }
  std::vector<ResidentMemory> memories;
  for (store::Resident& resident : residents) {
    const std::vector<std::string> parts = absl::StrSplit(resident.key.id, '/');
    memories.push_back({std::move(resident), {parts[1], parts[2]}, parts[3]});
  }
  return memories;
}

store::Tier Memories::SourceOf(const store::ResidentKey& key) const {
  return host_ != nullptr && host_->Has(key) ? store::Tier::kHost : store::Tier::kDisk;
}

uint64_t Memories::BytesOf(const store::StoredFile& file) const {
  return engine::FileBufferBytes(file.bytes, engine_->transformer().device());
}

absl::StatusOr<engine::SharedBytes> Memories::ReadFromDisk(const store::StoredFile& file) const {
  // The payload is aligned to 64 in the file, and so are the tensors that alias it here.
  const absl::StatusOr<engine::FileBuffer> buffer = CatchEngine(
      [&] { return engine::MakeFileBuffer(file.bytes, engine_->transformer().device()); });
  if (!buffer.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a file of ", file.bytes, " bytes; lower --device-budget"));
  }
  if (absl::Status status = store_->ReadFile(file, buffer->bytes); !status.ok()) return status;
  return engine::SharedBytes{buffer->owner, buffer->bytes};
}

absl::StatusOr<engine::SharedBytes> Memories::Read(const store::ResidentKey& key,
                                                   const store::StoredFile& file) const {
  if (host_ == nullptr) return ReadFromDisk(file);
  return host_->Get(key, BytesOf(file), [this, file] { return ReadFromDisk(file); });
}

absl::StatusOr<std::unique_ptr<const Memories::Loaded>> Memories::Load(
    const store::ResidentKey& key, const store::StoredFile& file) const {
  const store::Tier source = SourceOf(key);
  const absl::Time began = absl::Now();
  absl::StatusOr<engine::SharedBytes> bytes = Read(key, file);
  if (!bytes.ok()) return bytes.status();
  auto loaded = CatchEngine([&]() -> std::unique_ptr<const Loaded> {
    if (key.kind == store::ResidentKind::kCache) {
      return std::make_unique<const Loaded>(Loaded{engine_->LoadCache(*std::move(bytes)), nullptr});
    }
    return std::make_unique<const Loaded>(Loaded{nullptr, engine_->LoadAdapter(*std::move(bytes))});
  });
  if (loaded.ok()) metrics_->LoadFinished(source, absl::Now() - began);
  if (!absl::IsDataLoss(loaded.status())) return loaded;
  if (host_ != nullptr) host_->Erase(key);
  const absl::Status quarantined = store_->Quarantine(file, std::string(loaded.status().message()));
  if (!quarantined.ok()) return quarantined;
  return loaded;
}

}  // namespace docmem::server
