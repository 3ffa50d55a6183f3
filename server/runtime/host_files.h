#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "adapter_store/resident_cache.h"
#include "engine/artifacts/shared_bytes.h"

namespace docmem::server {

/// The host tier: files in main memory beside a GPU, so that what the device unloaded comes back
/// without the disk. Files are read through it; what doesn't fit is read past it. Thread-safe.
class HostFiles {
 public:
  using Read = std::function<absl::StatusOr<engine::SharedBytes>()>;

  HostFiles(uint64_t budget_bytes, std::unique_ptr<store::UnloadPolicy> policy);

  /// The file's bytes, which stay here while they are held: those that are here, else what `read`
  /// returns, on the calling thread. `bytes` is what they occupy.
  absl::StatusOr<engine::SharedBytes> Get(const store::ResidentKey& key, uint64_t bytes,
                                          const Read& read);

  bool Has(const store::ResidentKey& key) const { return files_.IsResident(key); }
  void Erase(const store::ResidentKey& key) { files_.Erase(key); }
  std::vector<store::Resident> Residents() const { return files_.Residents(); }
  store::ResidentStats Stats() const { return files_.Stats(); }

 private:
  store::ResidentCache<engine::SharedBytes> files_;
};

}  // namespace docmem::server
