#pragma once

#include <string>
#include <vector>

#include "client/cli/environment.h"

namespace docmem::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kStopped = 130;

/// Runs the program docmem with its arguments (without the program's name); returns its exit code.
int Run(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace docmem::cli
