#include "client/internal/chunks.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace docmem::client::internal {
namespace {

absl::Status FileError(const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("can't read ", path));
}

}  // namespace

absl::Status ReadFile(const std::string& path, const std::function<bool(absl::string_view)>& take) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileError(path, errno);
  std::string buffer(kChunkBytes, '\0');
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto count = static_cast<size_t>(file.gcount());
    if (count > 0 && !take({buffer.data(), count})) return absl::OkStatus();
  }
  return file.bad() ? FileError(path, errno) : absl::OkStatus();
}

absl::StatusOr<uint64_t> FileSize(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) return FileError(path, error.value());
  return size;
}

}  // namespace docmem::client::internal
