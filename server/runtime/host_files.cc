#include "server/runtime/host_files.h"

#include <future>
#include <utility>

namespace docmem::server {
namespace {

using FileCache = store::ResidentCache<engine::SharedBytes>;

}  // namespace

HostFiles::HostFiles(uint64_t budget_bytes, std::unique_ptr<store::UnloadPolicy> policy)
    : files_({.tier = store::Tier::kHost,
              .budget_bytes = budget_bytes,
              .executor = [](absl::AnyInvocable<void()> task) { task(); },
              .policy = std::move(policy)}) {}

absl::StatusOr<engine::SharedBytes> HostFiles::Get(const store::ResidentKey& key, uint64_t bytes,
                                                   const Read& read) {
  std::vector<store::ResidentItem<engine::SharedBytes>> items;
  items.push_back(
      {.key = key,
       .bytes = bytes,
       .loader = [read]() -> absl::StatusOr<std::unique_ptr<const engine::SharedBytes>> {
         absl::StatusOr<engine::SharedBytes> file = read();
         if (!file.ok()) return file.status();
         return std::make_unique<const engine::SharedBytes>(*std::move(file));
       }});
  // Only where another thread reads this very file does the end come later, from there.
  std::promise<absl::StatusOr<FileCache::Leases>> end;
  files_.Acquire(
      std::move(items), store::WhenFull::kFail,
      [&end](absl::StatusOr<FileCache::Leases> leases) { end.set_value(std::move(leases)); });
  absl::StatusOr<FileCache::Leases> leases = end.get_future().get();
  if (absl::IsResourceExhausted(leases.status())) return read();
  if (!leases.ok()) return leases.status();
  auto owner =
      std::make_shared<const store::Lease<engine::SharedBytes>>(std::move(leases->front()));
  return engine::SharedBytes{owner, (*owner)->bytes};
}

}  // namespace docmem::server
