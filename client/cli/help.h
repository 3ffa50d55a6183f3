#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"

namespace docmem::cli {

/// The help of the last command of `path`, at most 80 columns wide.
std::string HelpOf(const std::vector<Command*>& path);

}  // namespace docmem::cli
