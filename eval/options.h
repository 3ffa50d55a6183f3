#pragma once

#include <filesystem>
#include <string>

#include "engine/engine.h"
#include "eval/settings.h"

namespace docmem::eval {

/// What the command line of docmem-eval says.
struct Invocation {
  std::string print;  ///< not empty: print this and do nothing else (--help)
  engine::EngineOptions engine;
  std::filesystem::path data;
  std::filesystem::path output;
  size_t documents = 0;  ///< the data set's first; 0: all
  Settings settings;
};

/// Throws `engine::Error` of kind `kInvalidArgument` for what can't be understood.
Invocation ReadCommandLine(int argc, const char* const* argv);

}  // namespace docmem::eval
