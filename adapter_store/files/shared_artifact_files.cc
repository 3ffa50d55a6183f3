#include "adapter_store/files/shared_artifact_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/digest.h"
#include "adapter_store/files/file_in_memory.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr char kIdentityKey[] = "identity";
constexpr size_t kIdentityBytes = 32;
constexpr int64_t kFolders = 4096;

// Of all objects of a file: an id is never used again, so there is one, or none.
std::string KeyPrefix(int64_t id) {
  return absl::StrFormat("artifacts/%03x/%016x-", id % kFolders, id);
}

std::string KeyOf(const FileRef& ref, const std::string& digest) {
  const std::string name = FileName(ref);
  return absl::StrCat(KeyPrefix(ref.id), digest, name.substr(name.find('.')));
}

// What of the place's failures is about one object, and what says nothing of it: that must not
// look like a damaged file.
absl::Status OfPlace(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kResourceExhausted:
      return status;
    default:
      return StoreError(absl::StatusCode::kUnavailable, reason::kArtifactsUnavailable,
                        absl::StrCat("the shared artifacts can't be reached: ", status.message()));
  }
}

}  // namespace

absl::StatusOr<std::string> IdentityOf(ObjectStore& objects) {
  std::string identity(kIdentityBytes, '\0');
  STORE_RETURN_IF_ERROR(
      objects.Get(kIdentityKey, std::as_writable_bytes(std::span<char>(identity))));
  return identity;
}

absl::Status PutIdentity(ObjectStore& objects, const std::string& identity) {
  return objects.Put(kIdentityKey, FileInMemory(identity));
}

absl::StatusOr<std::unique_ptr<SharedArtifactFiles>> SharedArtifactFiles::Open(
    std::unique_ptr<LocalArtifactFiles> local, std::shared_ptr<ObjectStore> objects,
    std::string identity) {
  STORE_ASSIGN_OR_RETURN(std::vector<FoundFile> found, local->List());
  std::sort(found.begin(), found.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.modified < b.modified; });
  std::unique_ptr<SharedArtifactFiles> files(
      new SharedArtifactFiles(std::move(local), std::move(objects), std::move(identity)));
  for (const FoundFile& file : found) {
    if (file.temporary) {
      STORE_RETURN_IF_ERROR(files->local_->Drop(file.ref));
    } else {
      files->Touch(file.ref);
    }
  }
  return files;
}

absl::StatusOr<DiskReservation> SharedArtifactFiles::Reserve(uint64_t bytes) {
  for (;;) {
    absl::StatusOr<DiskReservation> reservation = local_->Reserve(bytes);
    if (!absl::IsResourceExhausted(reservation.status()) || bytes > budget().limit()) {
      return reservation;
    }
    if (!DropOldest()) return reservation;
  }
}

absl::Status SharedArtifactFiles::Publish(std::span<const StoredFile> files) {
  for (const StoredFile& file : files) {
    const FileRef ref = {file.id, file.kind};
    STORE_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> written, local_->OpenWritten(ref));
    STORE_RETURN_IF_ERROR(OfPlace(objects_->Put(KeyOf(ref, file.digest), *written)));
  }
  STORE_RETURN_IF_ERROR(local_->Publish(files));
  for (const StoredFile& file : files) Touch({file.id, file.kind});
  return absl::OkStatus();
}

absl::Status SharedArtifactFiles::Read(const FileRef& ref, const std::string& digest,
                                       std::span<std::byte> buffer) {
  if (local_->Read(ref, digest, buffer).ok()) {
    Touch(ref);
    return absl::OkStatus();
  }
  Drop(ref);  // it is damaged, if there is one
  STORE_RETURN_IF_ERROR(Fetch(ref, digest, buffer));
  Keep(ref, buffer);
  return absl::OkStatus();
}

// Documents would be given up for what passes: a volume that isn't mounted, a proxy that answers
// for a server that is away, a byte that was damaged on its way.
absl::Status SharedArtifactFiles::Fetch(const FileRef& ref, const std::string& digest,
                                        std::span<std::byte> buffer) {
  const std::string key = KeyOf(ref, digest);
  const absl::Status first = FetchOnce(key, digest, buffer);
  if (!absl::IsNotFound(first) && !absl::IsDataLoss(first)) return first;
  STORE_RETURN_IF_ERROR(CheckPlace());
  const absl::Status second = FetchOnce(key, digest, buffer);
  if (second.ok() || second.code() == first.code()) return second;
  return StoreError(absl::StatusCode::kUnavailable, reason::kArtifactsUnavailable,
                    absl::StrCat("the shared artifacts answer now one thing, now another: ",
                                 first.message(), "; ", second.message()));
}

absl::Status SharedArtifactFiles::FetchOnce(const std::string& key, const std::string& digest,
                                            std::span<std::byte> buffer) {
  STORE_RETURN_IF_ERROR(OfPlace(objects_->Get(key, buffer)));
  Xxh3Hasher hasher;
  hasher.Update(buffer);
  if (hasher.Hex() == digest) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the object '", key, "' has another checksum than when it was stored"));
}

absl::Status SharedArtifactFiles::CheckPlace() {
  const absl::StatusOr<std::string> identity = IdentityOf(*objects_);
  if (identity.ok() && *identity == identity_) return absl::OkStatus();
  return StoreError(absl::StatusCode::kUnavailable, reason::kArtifactsUnavailable,
                    absl::StrCat("the shared artifacts aren't where they were: ",
                                 identity.ok() ? "the place belongs to another registry"
                                               : identity.status().message()));
}

absl::StatusOr<uint64_t> SharedArtifactFiles::Remove(const FileRef& ref) {
  STORE_ASSIGN_OR_RETURN(const uint64_t freed, RemoveStray(ref));
  STORE_RETURN_IF_ERROR(OfPlace(objects_->DeleteAll(KeyPrefix(ref.id))));
  return freed;
}

absl::StatusOr<uint64_t> SharedArtifactFiles::RemoveStray(const FileRef& ref) {
  MutexLock lock(&change_mutex_);
  Forget(ref);
  return local_->Remove(ref);
}

// Where it fails, the next reading fetches again, no more.
void SharedArtifactFiles::Keep(const FileRef& ref, std::span<const std::byte> bytes) {
  absl::StatusOr<DiskReservation> reservation = Reserve(bytes.size());
  if (!reservation.ok()) return;
  MutexLock lock(&change_mutex_);
  {
    MutexLock list(&mutex_);
    if (places_.contains(ref)) return;
  }
  if (!local_->Drop(ref).ok()) return;
  if (local_->Keep(ref, *std::move(reservation), bytes).ok()) Touch(ref);
}

void SharedArtifactFiles::Drop(const FileRef& ref) {
  MutexLock lock(&change_mutex_);
  if (local_->Drop(ref).ok()) Forget(ref);
}

void SharedArtifactFiles::Touch(const FileRef& ref) {
  MutexLock lock(&mutex_);
  const auto found = places_.find(ref);
  if (found != places_.end()) {
    copies_.splice(copies_.begin(), copies_, found->second);
  } else {
    copies_.push_front(ref);
    places_[ref] = copies_.begin();
  }
}

void SharedArtifactFiles::Forget(const FileRef& ref) {
  MutexLock lock(&mutex_);
  const auto found = places_.find(ref);
  if (found == places_.end()) return;
  copies_.erase(found->second);
  places_.erase(found);
}

bool SharedArtifactFiles::DropOldest() {
  MutexLock lock(&change_mutex_);
  std::vector<FileRef> copies;
  {
    MutexLock list(&mutex_);
    copies.assign(copies_.rbegin(), copies_.rend());
  }
  for (const FileRef& ref : copies) {
    if (!local_->Drop(ref).ok()) continue;  // another may go
    Forget(ref);
    return true;
  }
  return false;
}

}  // namespace docmem::store
