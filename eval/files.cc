#include "eval/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/formats/error.h"
#include "engine/formats/mapped_file.h"

namespace docmem::eval {
namespace {

[[noreturn]] void ThrowSystem(const std::filesystem::path& path, const std::string& action) {
  engine::ThrowInternal(path.string(), "can't " + action + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : value_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (value_ < 0) ThrowSystem(path, "open it");
  }
  ~Descriptor() { close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

void WriteAll(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowSystem(path, "write it");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void Sync(int descriptor, const std::filesystem::path& path) {
  if (fsync(descriptor) != 0) ThrowSystem(path, "sync it");
}

}  // namespace

void WriteDurably(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path part = path.string() + ".part";
  {
    const Descriptor file(part, O_WRONLY | O_CREAT | O_TRUNC);
    WriteAll(file.value(), bytes, part);
    Sync(file.value(), part);
  }
  if (rename(part.c_str(), path.c_str()) != 0) ThrowSystem(path, "rename the new file to it");
  const std::filesystem::path folder = path.parent_path();
  Sync(Descriptor(folder, O_RDONLY | O_DIRECTORY).value(), folder);
}

std::string ReadWhole(const std::filesystem::path& path) {
  return std::string(engine::MappedFile::Open(path).text());
}

LineLog::LineLog(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) ThrowSystem(path_, "open it");
  try {
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      engine::ThrowFailedPrecondition(
          path_.string(), "another process is writing it: wait for it or choose another folder");
    }
    ReadLines();
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

LineLog::~LineLog() { close(descriptor_); }

void LineLog::ReadLines() {
  const std::string text = ReadWhole(path_);
  size_t first = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', first)) {
    lines_.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  if (first < text.size() && ftruncate(descriptor_, static_cast<off_t>(first)) != 0) {
    ThrowSystem(path_, "drop its cut last line");
  }
}

void LineLog::Append(std::string_view lines) {
  WriteAll(descriptor_, lines, path_);
  Sync(descriptor_, path_);
}

}  // namespace docmem::eval
