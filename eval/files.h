#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace docmem::eval {

/// Replaces a file: written under a temporary name, synced, renamed, its folder synced. Throws
/// `kInternal` with the path as the field; the old file is then still there.
void WriteDurably(const std::filesystem::path& path, std::string_view bytes);

/// A whole file. Throws as `engine::MappedFile::Open`.
std::string ReadWhole(const std::filesystem::path& path);

/// A file of lines that only grows. One process has it at a time.
class LineLog {
 public:
  /// Opens or creates it. A last line without its line feed was cut by a crash and is dropped.
  /// Throws `kFailedPrecondition` while another process has it open, `kInternal` when the system
  /// refuses; the field is the path.
  explicit LineLog(std::filesystem::path path);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  /// The lines that were there when it was opened, without their line feeds.
  std::vector<std::string> TakeLines() { return std::move(lines_); }

  /// Writes whole lines with their line feeds and syncs them. Throws `kInternal`; then a part of
  /// them may be there, and only destruction is allowed.
  void Append(std::string_view lines);

 private:
  void ReadLines();

  const std::filesystem::path path_;
  int descriptor_ = -1;
  std::vector<std::string> lines_;
};

}  // namespace docmem::eval
