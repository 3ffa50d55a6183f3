#include "engine/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace docmem::engine {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string SystemMessage(int error) { return std::system_category().message(error); }

[[noreturn]] void ThrowOpenError(const std::filesystem::path& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      ThrowNotFound(path.string(), "no such file");
    case ELOOP:
      ThrowInvalidArgument(path.string(), "is a symbolic link, which isn't followed here");
    default:
      ThrowInternal(path.string(), "can't be opened: " + SystemMessage(error));
  }
}

}  // namespace

MappedFile MappedFile::Open(const std::filesystem::path& path, SymbolicLinks links) {
  // Non-blocking, so that a named pipe is refused below instead of waited for.
  const int flags =
      O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == SymbolicLinks::kRefuse ? O_NOFOLLOW : 0);
  const FileDescriptor file(::open(path.c_str(), flags));
  if (file.get() < 0) ThrowOpenError(path, errno);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) ThrowOpenError(path, errno);
  if (!S_ISREG(status.st_mode)) ThrowInvalidArgument(path.string(), "isn't a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile(path, nullptr, 0);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    ThrowInternal(path.string(), "can't be mapped into memory: " + SystemMessage(errno));
  }
  return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace docmem::engine
