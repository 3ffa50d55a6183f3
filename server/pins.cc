#include "server/pins.h"

#include <algorithm>
#include <optional>
#include <string>

namespace docmem::server {
namespace {

void RestorePin(const store::Document& document, store::AdapterStore& store, Residency& residency,
                Log& log) {
  std::optional<store::Adapter> adapter;
  if (document.current_adapter_version != 0) {
    if (auto current = store.GetAdapter(document.key, 0); current.ok()) adapter = *current;
  }
  residency.SetPins(document, adapter ? &*adapter : nullptr);
  const auto cache = std::find_if(
      document.caches.begin(), document.caches.end(),
      [&](const store::Cache& one) { return one.spec.id == document.default_cache_id; });
  if (cache == document.caches.end()) return;
  residency.Prefetch(document.key, *cache, adapter ? &*adapter : nullptr,
                     [&log, key = document.key](const absl::Status& status) {
                       if (status.ok()) return;
                       log.Warning("pinned document not loaded",
                                   {{"collection", key.collection},
                                    {"document", key.id},
                                    {"message", std::string(status.message())}});
                     });
}

absl::StatusOr<uint32_t> RestoreCollection(const std::string& collection,
                                           store::AdapterStore& store, Residency& residency,
                                           Log& log) {
  uint32_t pinned = 0;
  store::PageRequest page{.size = 1000};
  do {
    const auto documents = store.ListDocuments(collection, {}, page);
    if (!documents.ok()) return documents.status();
    for (const store::Document& document : documents->items) {
      if (!document.spec.pinned || document.state != store::DocumentState::kReady) continue;
      RestorePin(document, store, residency, log);
      ++pinned;
    }
    page.token = documents->next_token;
  } while (!page.token.empty());
  return pinned;
}

}  // namespace

absl::StatusOr<uint32_t> RestorePins(store::AdapterStore& store, Residency& residency, Log& log) {
  uint32_t pinned = 0;
  store::PageRequest page{.size = 1000};
  do {
    const auto collections = store.ListCollections(page);
    if (!collections.ok()) return collections.status();
    for (const store::Collection& collection : collections->items) {
      const auto restored = RestoreCollection(collection.name, store, residency, log);
      if (!restored.ok()) return restored.status();
      pinned += *restored;
    }
    page.token = collections->next_token;
  } while (!page.token.empty());
  return pinned;
}

}  // namespace docmem::server
