#include "adapter_store/resident_core.h"

#include <utility>

#include "adapter_store/resident_core_impl.h"

namespace docmem::store::internal {

CoreLease::CoreLease(std::shared_ptr<Core> core, std::shared_ptr<Entry> entry, Tier found_in)
    : core_(std::move(core)), entry_(std::move(entry)), found_in_(found_in) {}

CoreLease& CoreLease::operator=(CoreLease&& other) noexcept {
  if (this == &other) return *this;
  End();
  core_ = std::move(other.core_);
  entry_ = std::move(other.entry_);
  found_in_ = other.found_in_;
  return *this;
}

CoreLease::~CoreLease() { End(); }

void CoreLease::End() {
  if (entry_ != nullptr) core_->EndLease(std::move(entry_));
  core_.reset();
}

const void* CoreLease::value() const { return entry_ == nullptr ? nullptr : entry_->value.get(); }
const ResidentKey& CoreLease::key() const { return entry_->key; }
uint64_t CoreLease::bytes() const { return entry_->bytes; }

bool CoreImpl::IsResident(const ResidentKey& key) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() && !found->second->loading;
}

std::vector<Resident> CoreImpl::Residents() const {
  MutexLock lock(&mutex_);
  std::vector<Resident> residents;
  for (const auto& [key, entry] : entries_) {
    residents.push_back({key, tier_, entry->bytes, entry->leases, entry->pinned, entry->loading});
  }
  return residents;
}

ResidentStats CoreImpl::Stats() const {
  MutexLock lock(&mutex_);
  ResidentStats result;
  result.budget_bytes = budget_;
  result.used_bytes = used_;
  result.waiting_requests = waiting_.size();
  result.kinds = stats_;
  const auto add = [&](const Entry& entry) {
    ResidentKindStats& kind = result.kinds[static_cast<size_t>(entry.key.kind)];
    if (entry.loading) {
      kind.loading_bytes += entry.bytes;
      return;
    }
    ++kind.resident_items;
    kind.resident_bytes += entry.bytes;
    if (entry.pinned) kind.pinned_bytes += entry.bytes;
    if (entry.leases > 0) kind.leased_bytes += entry.bytes;
  };
  for (const auto& [key, entry] : entries_) add(*entry);
  for (const auto& entry : erased_) add(*entry);
  return result;
}

std::shared_ptr<Core> MakeCore(ResidentCacheOptions options) {
  return std::make_shared<CoreImpl>(std::move(options));
}

}  // namespace docmem::store::internal
