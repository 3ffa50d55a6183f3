#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"

namespace docmem::cli {

/// What the arguments ask for.
struct Invocation {
  enum class Kind { kRun, kHelp, kVersion };
  Kind kind = Kind::kRun;
  /// From the root to the chosen command; never empty.
  std::vector<Command*> path;
};

/// Parses into the members of the commands. The root's options may stand anywhere. A usage error
/// says what is wrong and where to look.
absl::StatusOr<Invocation> Parse(Command* root, std::vector<std::string> arguments);

/// "docmem cache build".
std::string PathName(const std::vector<Command*>& path);

}  // namespace docmem::cli
