#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/file_system.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr size_t kLargestTransfer = size_t{1} << 30;

absl::Status DiskError(const char* operation, const std::string& path, int error) {
  const std::string message =
      absl::StrCat("can't ", operation, " '", path, "': ", std::generic_category().message(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case ENOSPC:
    case EDQUOT:
      return StoreError(absl::StatusCode::kResourceExhausted, reason::kDiskFull, message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ELOOP:
    case ENOTDIR:
      return absl::FailedPreconditionError(
          absl::StrCat(message, "; symbolic links in the data folder are never followed"));
    default:
      return absl::UnavailableError(message);
  }
}

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  absl::Status Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written =
          write(fd_.get(), bytes.data(), std::min(bytes.size(), kLargestTransfer));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return DiskError("write", path_, errno);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    return fsync(fd_.get()) == 0 ? absl::OkStatus() : DiskError("sync", path_, errno);
  }

 private:
  const std::string path_;
  Descriptor fd_;
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(std::string path, Descriptor fd, uint64_t bytes)
      : path_(std::move(path)), fd_(std::move(fd)), bytes_(bytes) {}

  uint64_t bytes() const override { return bytes_; }

  absl::Status Read(uint64_t offset, std::span<std::byte> buffer) const override {
    while (!buffer.empty()) {
      const ssize_t got = pread(fd_.get(), buffer.data(), std::min(buffer.size(), kLargestTransfer),
                                static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return DiskError("read", path_, errno);
      if (got == 0) {
        return absl::DataLossError(absl::StrCat("'", path_, "' ends at byte ", offset, ", ",
                                                buffer.size(), " bytes before its end"));
      }
      offset += static_cast<uint64_t>(got);
      buffer = buffer.subspan(static_cast<size_t>(got));
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  Descriptor fd_;
  const uint64_t bytes_;
};

class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(Descriptor fd) : fd_(std::move(fd)) {}

 private:
  Descriptor fd_;
};

FileEntry EntryOf(std::string name, const struct stat& info) {
  FileEntry entry;
  entry.name = std::move(name);
  entry.bytes = static_cast<uint64_t>(info.st_size);
  entry.modified = absl::TimeFromTimespec(info.st_mtim);
  entry.is_folder = S_ISDIR(info.st_mode);
  entry.is_regular = S_ISREG(info.st_mode);
  return entry;
}

class PosixFileSystem : public FileSystem {
 public:
  explicit PosixFileSystem(Descriptor root) : root_(std::move(root)) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    STORE_ASSIGN_OR_RETURN(Place place, Find(path));
    Descriptor fd(openat(place.folder.get(), place.name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (fd.get() < 0) return DiskError("create", path, errno);
    return std::make_unique<PosixWritableFile>(path, std::move(fd));
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    STORE_ASSIGN_OR_RETURN(Place place, Find(path));
    // Non-blocking, so that a pipe under one of our names can't hang the reader.
    Descriptor fd(openat(place.folder.get(), place.name.c_str(),
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (fd.get() < 0) return DiskError("open", path, errno);
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return DiskError("examine", path, errno);
    if (!S_ISREG(info.st_mode)) {
      return absl::FailedPreconditionError(absl::StrCat("'", path, "' isn't a regular file"));
    }
    return std::make_unique<PosixReadableFile>(path, std::move(fd),
                                               static_cast<uint64_t>(info.st_size));
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    STORE_ASSIGN_OR_RETURN(Place source, Find(from));
    STORE_ASSIGN_OR_RETURN(Place target, Find(to));
    if (renameat(source.folder.get(), source.name.c_str(), target.folder.get(),
                 target.name.c_str()) != 0) {
      return DiskError("rename", from, errno);
    }
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    STORE_ASSIGN_OR_RETURN(Place place, Find(path));
    if (unlinkat(place.folder.get(), place.name.c_str(), 0) != 0) {
      return DiskError("delete", path, errno);
    }
    return absl::OkStatus();
  }

  absl::Status CreateFolder(const std::string& path) override {
    STORE_ASSIGN_OR_RETURN(Place place, Find(path));
    if (mkdirat(place.folder.get(), place.name.c_str(), kFolderMode) == 0) return absl::OkStatus();
    if (errno != EEXIST) return DiskError("create folder", path, errno);
    return OpenFolder(path).status();
  }

  absl::Status SyncFolder(const std::string& path) override {
    STORE_ASSIGN_OR_RETURN(Descriptor folder, OpenFolder(path));
    if (fsync(folder.get()) != 0) return DiskError("sync folder", path, errno);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<FileEntry>> List(const std::string& path) override {
    STORE_ASSIGN_OR_RETURN(Descriptor folder, OpenFolder(path));
    DIR* stream = fdopendir(folder.get());
    if (stream == nullptr) return DiskError("list", path, errno);
    folder.release();
    std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, closedir);
    std::vector<FileEntry> entries;
    errno = 0;
    while (const dirent* item = readdir(stream)) {
      const std::string name = item->d_name;
      struct stat info;
      if (name == "." || name == "..") continue;
      if (fstatat(dirfd(stream), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
        entries.push_back(EntryOf(name, info));
      } else if (errno != ENOENT) {
        return DiskError("examine", path, errno);
      }
      errno = 0;
    }
    if (errno != 0) return DiskError("list", path, errno);
    return entries;
  }

  absl::StatusOr<FileEntry> Stat(const std::string& path) override {
    STORE_ASSIGN_OR_RETURN(Place place, Find(path));
    struct stat info;
    if (fstatat(place.folder.get(), place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return DiskError("examine", path, errno);
    }
    return EntryOf(place.name, info);
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    STORE_ASSIGN_OR_RETURN(Place place, Find(path));
    Descriptor fd(openat(place.folder.get(), place.name.c_str(),
                         O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (fd.get() < 0) return DiskError("open", path, errno);
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return DiskError("lock", path, errno);
      return absl::FailedPreconditionError(
          "another process uses this data folder; stop it or choose another folder");
    }
    return std::make_unique<PosixFileLock>(std::move(fd));
  }

 private:
  struct Place {
    Descriptor folder;
    std::string name;
  };

  // Walks component by component without following a link, so no race can lead outside.
  absl::StatusOr<Descriptor> OpenFolder(const std::string& path) {
    Descriptor folder(openat(root_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() < 0) return DiskError("open", path, errno);
    if (path.empty()) return folder;
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(path, '/'))) {
      STORE_RETURN_IF_ERROR(CheckName(part, path));
      Descriptor next(
          openat(folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (next.get() < 0) return DiskError("open folder", path, errno);
      folder = std::move(next);
    }
    return folder;
  }

  absl::StatusOr<Place> Find(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    STORE_RETURN_IF_ERROR(CheckName(name, path));
    STORE_ASSIGN_OR_RETURN(Descriptor folder, OpenFolder(parent));
    return Place{std::move(folder), name};
  }

  static absl::Status CheckName(const std::string& name, const std::string& path) {
    if (!name.empty() && name != "." && name != ".." && name.find('\0') == std::string::npos) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat("'", path, "' isn't a name in the folder"));
  }

  Descriptor root_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem>> OpenPosixFileSystem(const std::string& root) {
  if (mkdir(root.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return DiskError("create", root, errno);
  }
  Descriptor fd(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return DiskError("open", root, errno);
  return std::make_unique<PosixFileSystem>(std::move(fd));
}

}  // namespace docmem::store
