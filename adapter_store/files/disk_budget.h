#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/sync.h"

namespace docmem::store {

class DiskBudget;

/// Bytes that are promised to a file that is being written. Destruction gives back what wasn't
/// used. Move-only; one thread.
class DiskReservation {
 public:
  DiskReservation() = default;
  DiskReservation(DiskReservation&& other) noexcept;
  DiskReservation& operator=(DiskReservation&& other) noexcept;
  ~DiskReservation();
  uint64_t left() const { return left_; }
  /// `bytes` (at most `left()`) lie on the disk now.
  void Use(uint64_t bytes);

 private:
  friend class DiskBudget;
  DiskReservation(DiskBudget* budget, uint64_t bytes) : budget_(budget), left_(bytes) {}
  DiskBudget* budget_ = nullptr;
  uint64_t left_ = 0;
};

/// Counts the bytes of artifact files. Thread-safe; outlives its reservations.
class DiskBudget {
 public:
  /// 0: no limit.
  explicit DiskBudget(uint64_t limit_bytes) : limit_(limit_bytes) {}

  /// RESOURCE_EXHAUSTED naming need, free and limit when used and reserved bytes would exceed the
  /// limit.
  absl::StatusOr<DiskReservation> Reserve(uint64_t bytes);
  /// Files that were found, or that turned out longer than was counted.
  void AddUsed(uint64_t bytes);
  /// Files that were deleted.
  void RemoveUsed(uint64_t bytes);

  uint64_t limit() const { return limit_; }
  uint64_t used() const;
  uint64_t reserved() const;

 private:
  friend class DiskReservation;
  void Settle(uint64_t reserved, uint64_t used);

  const uint64_t limit_;
  mutable Mutex mutex_;
  uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace docmem::store
