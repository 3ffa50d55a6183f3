#pragma once

#include <string>

#include "client/cli/command.h"

namespace docmem::cli {

/// Scripts that complete commands, options and their choices in a shell.
std::string BashCompletion(const Command& root);
std::string ZshCompletion(const Command& root);
std::string FishCompletion(const Command& root);

}  // namespace docmem::cli
