#include "adapter_store/files/shared_artifact_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/digest.h"
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

class TextInMemory : public ReadableFile {
 public:
  explicit TextInMemory(const std::string& text) : text_(text) {}
  uint64_t bytes() const override { return text_.size(); }
  absl::Status Read(uint64_t offset, std::span<std::byte> buffer) const override {
    std::memcpy(buffer.data(), text_.data() + offset, buffer.size());
    return absl::OkStatus();
  }

 private:
  const std::string& text_;
};

}  // namespace

absl::StatusOr<std::string> IdentityOf(ObjectStore& objects) {
  std::string identity(kIdentityBytes, '\0');
  STORE_RETURN_IF_ERROR(
      objects.Get(kIdentityKey, std::as_writable_bytes(std::span<char>(identity))));
  return identity;
}

absl::Status PutIdentity(ObjectStore& objects, const std::string& identity) {
  return objects.Put(kIdentityKey, TextInMemory(identity));
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
    if (!file.temporary) files->Touch(file.ref);
  }
  return files;
}

absl::StatusOr<DiskReservation> SharedArtifactFiles::Reserve(uint64_t bytes) {
  for (;;) {
    absl::StatusOr<DiskReservation> reservation = local_->Reserve(bytes);
    if (!absl::IsResourceExhausted(reservation.status()) || bytes > budget().limit()) {
      return reservation;
    }
    if (!EvictOldest()) return reservation;
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

absl::Status SharedArtifactFiles::Fetch(const FileRef& ref, const std::string& digest,
                                        std::span<std::byte> buffer) {
  const std::string key = KeyOf(ref, digest);
  const absl::Status status = OfPlace(objects_->Get(key, buffer));
  if (absl::IsNotFound(status)) {
    // Else documents would be given up because a volume isn't mounted.
    const absl::StatusOr<std::string> identity = IdentityOf(*objects_);
    if (identity.ok() && *identity == identity_) return status;
    return StoreError(absl::StatusCode::kUnavailable, reason::kArtifactsUnavailable,
                      absl::StrCat("the shared artifacts aren't where they were: ",
                                   identity.ok() ? "the place belongs to another registry"
                                                 : identity.status().message()));
  }
  STORE_RETURN_IF_ERROR(status);
  Xxh3Hasher hasher;
  hasher.Update(buffer);
  if (hasher.Hex() == digest) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the object '", key, "' has another checksum than when it was stored"));
}

absl::StatusOr<uint64_t> SharedArtifactFiles::Remove(const FileRef& ref) {
  absl::StatusOr<uint64_t> freed = 0;
  {
    MutexLock lock(&change_mutex_);
    Forget(ref);
    freed = local_->Remove(ref);
  }
  STORE_RETURN_IF_ERROR(freed.status());
  STORE_RETURN_IF_ERROR(OfPlace(objects_->DeleteAll(KeyPrefix(ref.id))));
  return freed;
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
  if (local_->Keep(ref, *std::move(reservation), bytes).ok()) Touch(ref);
}

void SharedArtifactFiles::Drop(const FileRef& ref) {
  MutexLock lock(&change_mutex_);
  if (Forget(ref)) local_->Drop(ref).IgnoreError();
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

bool SharedArtifactFiles::Forget(const FileRef& ref) {
  MutexLock lock(&mutex_);
  const auto found = places_.find(ref);
  if (found == places_.end()) return false;
  copies_.erase(found->second);
  places_.erase(found);
  return true;
}

bool SharedArtifactFiles::EvictOldest() {
  MutexLock lock(&change_mutex_);
  FileRef oldest;
  {
    MutexLock list(&mutex_);
    if (copies_.empty()) return false;
    oldest = copies_.back();
  }
  Forget(oldest);
  return local_->Drop(oldest).ok();
}

}  // namespace docmem::store
