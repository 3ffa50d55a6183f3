#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/files/object_store.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr char kUnfinished[] = ".part";
constexpr size_t kCopyChunk = size_t{1} << 20;

std::string FolderOf(const std::string& key) {
  const size_t slash = key.rfind('/');
  return slash == std::string::npos ? "" : key.substr(0, slash);
}

// An unfinished object lies beside its place, so that the rename stays inside one folder.
class FolderStore : public ObjectStore {
 public:
  explicit FolderStore(std::shared_ptr<FileSystem> files) : files_(std::move(files)) {}

  absl::Status Put(const std::string& key, const ReadableFile& file) override {
    STORE_RETURN_IF_ERROR(MakeFolders(FolderOf(key)));
    // Of this call alone: replicas may put the same key at the same time.
    const std::string part = absl::StrCat(key, ".", absl::Hex(NextRandom()), kUnfinished);
    absl::Status status = Copy(file, part);
    if (status.ok()) status = files_->Rename(part, key);
    if (status.ok()) return files_->SyncFolder(FolderOf(key));
    files_->Remove(part).IgnoreError();
    return status;
  }

  absl::Status Get(const std::string& key, std::span<std::byte> buffer) override {
    STORE_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files_->Open(key));
    if (file->bytes() != buffer.size()) {
      return absl::DataLossError(absl::StrCat("the object '", key, "' has ", file->bytes(),
                                              " bytes instead of ", buffer.size()));
    }
    return file->Read(0, buffer);
  }

  absl::Status DeleteAll(const std::string& prefix) override {
    const std::string folder = FolderOf(prefix);
    const absl::StatusOr<std::vector<FileEntry>> entries = files_->List(folder);
    if (absl::IsNotFound(entries.status())) return absl::OkStatus();
    STORE_RETURN_IF_ERROR(entries.status());
    bool removed = false;
    for (const FileEntry& entry : *entries) {
      const std::string key = folder.empty() ? entry.name : absl::StrCat(folder, "/", entry.name);
      if (entry.is_folder || !absl::StartsWith(key, prefix)) continue;
      const absl::Status status = files_->Remove(key);
      if (!status.ok() && !absl::IsNotFound(status)) return status;
      removed = true;
    }
    return removed ? files_->SyncFolder(folder) : absl::OkStatus();
  }

 private:
  absl::Status Copy(const ReadableFile& from, const std::string& to) {
    STORE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files_->Create(to));
    std::vector<std::byte> chunk(std::min<uint64_t>(kCopyChunk, from.bytes()));
    for (uint64_t offset = 0; offset < from.bytes(); offset += chunk.size()) {
      chunk.resize(std::min<uint64_t>(chunk.size(), from.bytes() - offset));
      STORE_RETURN_IF_ERROR(from.Read(offset, chunk));
      STORE_RETURN_IF_ERROR(file->Append(chunk));
    }
    return file->Sync();
  }

  // Each folder's name must survive a loss of power as the object in it does, also where another
  // replica has just made it.
  absl::Status MakeFolders(const std::string& folder) {
    if (folder.empty()) return absl::OkStatus();
    STORE_RETURN_IF_ERROR(MakeFolders(FolderOf(folder)));
    STORE_RETURN_IF_ERROR(files_->CreateFolder(folder));
    return files_->SyncFolder(FolderOf(folder));
  }

  static uint64_t NextRandom() {
    thread_local std::mt19937_64 random{(uint64_t{std::random_device()()} << 32) |
                                        std::random_device()()};
    return random();
  }

  const std::shared_ptr<FileSystem> files_;
};

}  // namespace

std::unique_ptr<ObjectStore> FolderObjectStore(std::shared_ptr<FileSystem> files) {
  return std::make_unique<FolderStore>(std::move(files));
}

}  // namespace docmem::store
