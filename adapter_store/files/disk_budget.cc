#include "adapter_store/files/disk_budget.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/errors.h"

namespace docmem::store {

DiskReservation::DiskReservation(DiskReservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), left_(std::exchange(other.left_, 0)) {}

DiskReservation& DiskReservation::operator=(DiskReservation&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(left_, other.left_);
  return *this;
}

DiskReservation::~DiskReservation() {
  if (budget_ != nullptr) budget_->Settle(left_, 0);
}

void DiskReservation::Use(uint64_t bytes) {
  left_ -= bytes;
  budget_->Settle(bytes, bytes);
}

absl::StatusOr<DiskReservation> DiskBudget::Reserve(uint64_t bytes) {
  MutexLock lock(&mutex_);
  const uint64_t limit = limit_ == 0 ? std::numeric_limits<uint64_t>::max() : limit_;
  const uint64_t taken = used_ + reserved_;
  const uint64_t free = taken >= limit ? 0 : limit - taken;
  if (bytes > free) {
    return StoreError(
        absl::StatusCode::kResourceExhausted, reason::kDiskBudgetExceeded,
        absl::StrCat("the disk budget of ", limit_, " bytes has ", free, " bytes free, ", bytes,
                     " are needed; delete documents or raise the budget"),
        {{"need_bytes", absl::StrCat(bytes)},
         {"free_bytes", absl::StrCat(free)},
         {"budget_bytes", absl::StrCat(limit_)}});
  }
  reserved_ += bytes;
  return DiskReservation(this, bytes);
}

void DiskBudget::AddUsed(uint64_t bytes) {
  MutexLock lock(&mutex_);
  used_ += bytes;
}

void DiskBudget::RemoveUsed(uint64_t bytes) {
  MutexLock lock(&mutex_);
  used_ -= std::min(bytes, used_);
}

uint64_t DiskBudget::used() const {
  MutexLock lock(&mutex_);
  return used_;
}

uint64_t DiskBudget::reserved() const {
  MutexLock lock(&mutex_);
  return reserved_;
}

void DiskBudget::Settle(uint64_t reserved, uint64_t used) {
  MutexLock lock(&mutex_);
  reserved_ -= reserved;
  used_ += used;
}

}  // namespace docmem::store
