#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace docmem::store::store_test {

/// Remembers what was done to the files of one folder since each was synced, so that a loss of
/// power can be played. A file's first sync also makes the names of the others durable, as the
/// sync of a new log or journal does. One thread at a time.
class UnsyncedFiles {
 public:
  /// A file's content; nothing where there is none.
  using Content = std::optional<std::string>;
  struct File {
    Content synced;
    std::vector<std::function<void(Content&)>> changes;
  };

  /// Before it is opened for the first time. Lives as long as this.
  File& Of(const std::string& path) {
    const auto [found, is_new] = files_.try_emplace(path);
    if (is_new && std::filesystem::exists(path)) {
      std::ifstream in(path, std::ios::binary);
      found->second.synced.emplace(std::istreambuf_iterator<char>(in),
                                   std::istreambuf_iterator<char>());
    }
    return found->second;
  }

  static void Write(File& file, const std::string& bytes, int64_t offset) {
    file.changes.emplace_back([bytes, start = static_cast<size_t>(offset)](Content& content) {
      if (!content.has_value()) content.emplace();
      if (content->size() < start + bytes.size()) content->resize(start + bytes.size());
      content->replace(start, bytes.size(), bytes);
    });
  }
  static void Cut(File& file, int64_t size) {
    file.changes.emplace_back([size](Content& content) {
      if (content.has_value()) content->resize(static_cast<size_t>(size));
    });
  }
  void Removed(const std::string& path) {
    Of(path).changes.emplace_back([](Content& content) { content.reset(); });
  }

  void Synced(File& file) {
    const bool is_new = !file.synced.has_value();
    Apply(file);
    if (!is_new) return;
    for (auto& [path, other] : files_) {
      if (&other != &file && !std::filesystem::exists(path)) Apply(other);
    }
  }

  /// Takes back every change since the last sync, or in part: every second one. All files must be
  /// closed.
  void LosePower(bool in_part) {
    for (auto& [path, file] : files_) {
      for (size_t i = 1; in_part && i < file.changes.size(); i += 2) file.changes[i](file.synced);
      file.changes.clear();
      std::filesystem::remove(path);
      if (file.synced.has_value()) std::ofstream(path, std::ios::binary) << *file.synced;
    }
  }

 private:
  static void Apply(File& file) {
    for (const auto& change : file.changes) change(file.synced);
    file.changes.clear();
  }

  std::map<std::string, File> files_;
};

}  // namespace docmem::store::store_test
