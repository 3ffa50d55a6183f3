#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/environment.h"

namespace docmem::cli {

/// A whole file. Errors name it; INVALID_ARGUMENT where it is longer than `max_bytes`.
absl::StatusOr<std::string> ReadLocalFile(const std::string& path, uint64_t max_bytes);

/// The same, where "-" is standard input.
absl::StatusOr<std::string> ReadInput(const std::string& path, uint64_t max_bytes,
                                      const Environment& environment);

/// The same for a text of the user's, without its last line feed; INVALID_ARGUMENT unless it is
/// UTF-8.
absl::StatusOr<std::string> ReadText(const std::string& path, uint64_t max_bytes,
                                     const Environment& environment);

/// A file that exists under its name only when it is whole: written as `<path>.part`, which is
/// deleted unless `Commit` renames it.
class LocalFileWriter {
 public:
  explicit LocalFileWriter(std::string path);
  ~LocalFileWriter();
  LocalFileWriter(const LocalFileWriter&) = delete;
  LocalFileWriter& operator=(const LocalFileWriter&) = delete;

  absl::Status Write(absl::string_view bytes);
  absl::Status Commit();

 private:
  absl::Status Error() const;

  const std::string path_;
  const std::string part_path_;
  std::ofstream file_;
  bool committed_ = false;
};

}  // namespace docmem::cli
