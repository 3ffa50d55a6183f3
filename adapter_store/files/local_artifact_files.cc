#include "adapter_store/files/local_artifact_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/digest.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr char kArtifacts[] = "artifacts";
constexpr char kTemporary[] = "temporary";
constexpr int kShards = 64;
constexpr size_t kReadChunk = size_t{1} << 20;

std::string ShardFolder(int shard) { return absl::StrFormat("%s/%02x", kArtifacts, shard); }

std::string FinalFolder(const FileRef& ref) {
  return ShardFolder(static_cast<int>(ref.id % kShards));
}

std::string FinalPath(const FileRef& ref) {
  return absl::StrCat(FinalFolder(ref), "/", FileName(ref));
}

std::string TemporaryPath(const FileRef& ref) {
  return absl::StrCat(kTemporary, "/", FileName(ref));
}

class HashingWriter : public ArtifactWriter {
 public:
  HashingWriter(WritableFile* file, DiskReservation* reservation)
      : file_(file), reservation_(reservation) {}

  absl::Status Append(std::span<const std::byte> bytes) override {
    if (!status_.ok()) return status_;
    if (bytes.size() > reservation_->left()) {
      return status_ = absl::InternalError(absl::StrCat("more bytes were written than the ",
                                                        bytes_ + reservation_->left(),
                                                        " that had been declared"));
    }
    status_ = file_->Append(bytes);
    if (!status_.ok()) return status_;
    reservation_->Use(bytes.size());
    bytes_ += bytes.size();
    hasher_.Update(bytes);
    return status_;
  }

  const absl::Status& status() const { return status_; }
  uint64_t bytes() const { return bytes_; }
  WrittenFile Result() const { return {bytes_, hasher_.Hex()}; }

 private:
  WritableFile* const file_;
  DiskReservation* const reservation_;
  absl::Status status_;
  uint64_t bytes_ = 0;
  Xxh3Hasher hasher_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LocalArtifactFiles>> LocalArtifactFiles::Open(
    FileSystem* files, uint64_t budget_bytes) {
  STORE_RETURN_IF_ERROR(files->CreateFolder(kTemporary));
  STORE_RETURN_IF_ERROR(files->CreateFolder(kArtifacts));
  for (int shard = 0; shard < kShards; ++shard) {
    STORE_RETURN_IF_ERROR(files->CreateFolder(ShardFolder(shard)));
  }
  STORE_RETURN_IF_ERROR(files->SyncFolder(kArtifacts));
  STORE_RETURN_IF_ERROR(files->SyncFolder(""));
  std::unique_ptr<LocalArtifactFiles> result(new LocalArtifactFiles(files, budget_bytes));
  STORE_ASSIGN_OR_RETURN(std::vector<FoundFile> found, result->List());
  for (const FoundFile& file : found) result->budget_.AddUsed(file.bytes);
  return result;
}

absl::StatusOr<WrittenFile> LocalArtifactFiles::Write(const FileRef& ref,
                                                      DiskReservation reservation,
                                                      const ArtifactProducer& producer) {
  return WriteTemporary(ref, std::move(reservation), producer, true);
}

absl::StatusOr<WrittenFile> LocalArtifactFiles::WriteTemporary(const FileRef& ref,
                                                               DiskReservation reservation,
                                                               const ArtifactProducer& producer,
                                                               bool durable) {
  const std::string path = TemporaryPath(ref);
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files_->Create(path));
  HashingWriter writer(file.get(), &reservation);
  absl::Status status = producer(writer);
  status.Update(writer.status());
  if (status.ok() && durable) status = file->Sync();
  if (status.ok()) return writer.Result();
  // A failed write may have left bytes that weren't counted.
  const absl::StatusOr<FileEntry> entry = files_->Stat(path);
  if (entry.ok() && entry->bytes > writer.bytes()) budget_.AddUsed(entry->bytes - writer.bytes());
  RemoveAt(path).IgnoreError();
  return status;
}

absl::Status LocalArtifactFiles::Publish(std::span<const StoredFile> files) {
  std::set<std::string> folders;
  for (const StoredFile& file : files) {
    const FileRef ref = {file.id, file.kind};
    STORE_RETURN_IF_ERROR(files_->Rename(TemporaryPath(ref), FinalPath(ref)));
    folders.insert(FinalFolder(ref));
  }
  return SyncFolders(folders);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> LocalArtifactFiles::OpenWritten(const FileRef& ref) {
  return files_->Open(TemporaryPath(ref));
}

absl::Status LocalArtifactFiles::Keep(const FileRef& ref, DiskReservation reservation,
                                      std::span<const std::byte> bytes) {
  const NewFile file = FileFromMemory("", bytes);
  STORE_RETURN_IF_ERROR(WriteTemporary(ref, std::move(reservation), file.producer, false).status());
  absl::Status status = files_->Rename(TemporaryPath(ref), FinalPath(ref));
  if (!status.ok()) RemoveAt(TemporaryPath(ref)).IgnoreError();
  return status;
}

absl::Status LocalArtifactFiles::Drop(const FileRef& ref) { return Remove(ref).status(); }

absl::Status LocalArtifactFiles::SyncRemovals(std::span<const FileRef> refs) {
  std::set<std::string> folders = {kTemporary};
  for (const FileRef& ref : refs) folders.insert(FinalFolder(ref));
  return SyncFolders(folders);
}

absl::Status LocalArtifactFiles::SyncFolders(const std::set<std::string>& folders) {
  for (const std::string& folder : folders) STORE_RETURN_IF_ERROR(files_->SyncFolder(folder));
  return absl::OkStatus();
}

absl::Status LocalArtifactFiles::Read(const FileRef& ref, const std::string& digest,
                                      std::span<std::byte> buffer) {
  const std::string path = FinalPath(ref);
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files_->Open(path));
  if (file->bytes() != buffer.size()) {
    return absl::DataLossError(
        absl::StrCat("'", path, "' has ", file->bytes(), " bytes instead of ", buffer.size()));
  }
  Xxh3Hasher hasher;
  for (size_t offset = 0; offset < buffer.size(); offset += kReadChunk) {
    const std::span<std::byte> chunk =
        buffer.subspan(offset, std::min(kReadChunk, buffer.size() - offset));
    STORE_RETURN_IF_ERROR(file->Read(offset, chunk));
    hasher.Update(chunk);
  }
  if (hasher.Hex() == digest) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("'", path, "' has another checksum than when it was stored"));
}

absl::StatusOr<uint64_t> LocalArtifactFiles::Remove(const FileRef& ref) {
  STORE_ASSIGN_OR_RETURN(const uint64_t temporary, RemoveAt(TemporaryPath(ref)));
  STORE_ASSIGN_OR_RETURN(const uint64_t published, RemoveAt(FinalPath(ref)));
  return temporary + published;
}

absl::StatusOr<uint64_t> LocalArtifactFiles::RemoveAt(const std::string& path) {
  const absl::StatusOr<FileEntry> entry = files_->Stat(path);
  if (absl::IsNotFound(entry.status())) return 0;
  STORE_RETURN_IF_ERROR(entry.status());
  const absl::Status status = files_->Remove(path);
  if (absl::IsNotFound(status)) return 0;
  STORE_RETURN_IF_ERROR(status);
  if (!entry->is_regular) return 0;
  budget_.RemoveUsed(entry->bytes);
  return entry->bytes;
}

absl::StatusOr<std::vector<FoundFile>> LocalArtifactFiles::List() {
  std::vector<std::string> folders = {kTemporary};
  for (int shard = 0; shard < kShards; ++shard) folders.push_back(ShardFolder(shard));
  std::vector<FoundFile> found;
  for (const std::string& folder : folders) {
    STORE_ASSIGN_OR_RETURN(std::vector<FileEntry> entries, files_->List(folder));
    for (const FileEntry& entry : entries) {
      const std::optional<FileRef> ref = ParseFileName(entry.name);
      if (!entry.is_regular || !ref.has_value()) continue;
      const bool temporary = folder == kTemporary;
      if (!temporary && FinalFolder(*ref) != folder) continue;
      found.push_back({*ref, entry.bytes, entry.modified, temporary});
    }
  }
  return found;
}

}  // namespace docmem::store
