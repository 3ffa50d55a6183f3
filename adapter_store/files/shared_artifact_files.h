#pragma once

#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapter_store/files/artifact_files.h"
#include "adapter_store/files/local_artifact_files.h"
#include "adapter_store/files/object_store.h"
#include "adapter_store/sync.h"

namespace docmem::store {

/// Files that several replicas share. Each is an object,
///   artifacts/<id modulo 4096, 3 hex digits>/<id, 16 hex digits>-<XXH3-128>.<kind>
/// and the data folder keeps copies of those that were used last, as long as its budget has room.
/// A copy that is damaged or gone is fetched again. Copies of files that another replica deletes
/// stay until there is need for room or `CollectGarbage` finds their rows gone.
class SharedArtifactFiles : public ArtifactFiles {
 public:
  /// `identity` is what the registry calls this place. What an earlier start was writing is
  /// deleted.
  static absl::StatusOr<std::unique_ptr<SharedArtifactFiles>> Open(
      std::unique_ptr<LocalArtifactFiles> local, std::shared_ptr<ObjectStore> objects,
      std::string identity);

  /// Drops copies where there is no room.
  absl::StatusOr<DiskReservation> Reserve(uint64_t bytes) override;
  absl::StatusOr<WrittenFile> Write(const FileRef& ref, DiskReservation reservation,
                                    const ArtifactProducer& producer) override {
    return local_->Write(ref, std::move(reservation), producer);
  }
  absl::Status Publish(std::span<const StoredFile> files) override;
  /// NOT_FOUND only while the place is what it was: a volume that isn't mounted is UNAVAILABLE.
  absl::Status Read(const FileRef& ref, const std::string& digest,
                    std::span<std::byte> buffer) override;
  absl::StatusOr<uint64_t> Remove(const FileRef& ref) override;
  absl::StatusOr<uint64_t> RemoveStray(const FileRef& ref) override;
  absl::Status SyncRemovals(std::span<const FileRef> refs) override {
    return local_->SyncRemovals(refs);
  }
  absl::StatusOr<std::vector<FoundFile>> List() override { return local_->List(); }
  const DiskBudget& budget() const override { return local_->budget(); }

 private:
  SharedArtifactFiles(std::unique_ptr<LocalArtifactFiles> local,
                      std::shared_ptr<ObjectStore> objects, std::string identity)
      : local_(std::move(local)), objects_(std::move(objects)), identity_(std::move(identity)) {}
  absl::Status Fetch(const FileRef& ref, const std::string& digest, std::span<std::byte> buffer);
  absl::Status FetchOnce(const std::string& key, const std::string& digest,
                         std::span<std::byte> buffer);
  absl::Status CheckPlace();
  void Keep(const FileRef& ref, std::span<const std::byte> bytes);
  void Drop(const FileRef& ref);
  bool DropOldest();
  void Touch(const FileRef& ref);
  void Forget(const FileRef& ref);

  const std::unique_ptr<LocalArtifactFiles> local_;
  const std::shared_ptr<ObjectStore> objects_;
  const std::string identity_;
  Mutex change_mutex_;  // over what makes and drops copies; taken before `mutex_`
  Mutex mutex_;
  std::list<FileRef> copies_ ABSL_GUARDED_BY(mutex_);  // last used first
  std::map<FileRef, std::list<FileRef>::iterator> places_ ABSL_GUARDED_BY(mutex_);
};

/// What a place says whose it is: the object `identity`, 32 hexadecimal digits. NOT_FOUND in a new
/// place.
absl::StatusOr<std::string> IdentityOf(ObjectStore& objects);
absl::Status PutIdentity(ObjectStore& objects, const std::string& identity);

}  // namespace docmem::store
