#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/environment.h"

namespace docmem::cli {

/// Questions with the answers that count as right.
struct QaFile {
  struct Item {
    std::string question;
    std::vector<std::string> answers;  ///< at least one
  };
  std::vector<Item> items;  ///< at least one
  std::string sha256;       ///< of the file
};

inline constexpr char kQaFileHelp[] =
    "One JSON object a line: \"question\", and \"answer\" or a list of \"answers\"; - is standard "
    "input";

/// Other members are ignored. Errors name file and line.
absl::StatusOr<QaFile> ReadQaFile(const std::string& path, const Environment& environment);

}  // namespace docmem::cli
