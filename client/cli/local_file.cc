#include "client/cli/local_file.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/display.h"

namespace docmem::cli {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

std::string NameOfInput(const std::string& path) { return path == "-" ? "standard input" : path; }

absl::StatusOr<std::string> ReadAll(std::istream& in, const std::string& name, uint64_t max_bytes) {
  std::string content;
  while (in && content.size() <= max_bytes) {
    const size_t before = content.size();
    content.resize(before + kBlockBytes);
    in.read(content.data() + before, kBlockBytes);
    content.resize(before + static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) return absl::ErrnoToStatus(errno, absl::StrCat("can't read ", name));
  if (content.size() <= max_bytes) return content;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is longer than ", max_bytes, " bytes, the limit"));
}

}  // namespace

absl::StatusOr<std::string> ReadLocalFile(const std::string& path, uint64_t max_bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("can't read ", path));
  return ReadAll(file, path, max_bytes);
}

absl::StatusOr<std::string> ReadInput(const std::string& path, uint64_t max_bytes,
                                      const Environment& environment) {
  if (path != "-") return ReadLocalFile(path, max_bytes);
  const std::stop_callback leave(environment.stop, environment.leave);
  return ReadAll(*environment.in, NameOfInput(path), max_bytes);
}

absl::StatusOr<std::string> ReadText(const std::string& path, uint64_t max_bytes,
                                     const Environment& environment) {
  absl::StatusOr<std::string> text = ReadInput(path, max_bytes, environment);
  if (!text.ok()) return text;
  if (!IsUtf8(*text)) {
    return absl::InvalidArgumentError(absl::StrCat(NameOfInput(path), " isn't valid UTF-8"));
  }
  if (text->ends_with('\n')) text->pop_back();
  return text;
}

LocalFileWriter::LocalFileWriter(std::string path)
    : path_(std::move(path)),
      part_path_(path_ + ".part"),
      file_(part_path_, std::ios::binary | std::ios::trunc) {}

LocalFileWriter::~LocalFileWriter() {
  if (!committed_) std::remove(part_path_.c_str());
}

absl::Status LocalFileWriter::Write(absl::string_view bytes) {
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file_ ? absl::OkStatus() : Error();
}

absl::Status LocalFileWriter::Commit() {
  file_.close();
  if (!file_ || std::rename(part_path_.c_str(), path_.c_str()) != 0) return Error();
  committed_ = true;
  return absl::OkStatus();
}

absl::Status LocalFileWriter::Error() const {
  return absl::ErrnoToStatus(errno, absl::StrCat("can't write ", path_));
}

}  // namespace docmem::cli
