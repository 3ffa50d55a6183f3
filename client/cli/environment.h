#pragma once

#include <functional>
#include <istream>
#include <ostream>
#include <stop_token>

namespace docmem::cli {

/// The world around a run of the program, so that tests can stand in for it. Everything must
/// outlive the run.
struct Environment {
  std::istream* in = nullptr;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  /// Gives an environment variable, or null.
  std::function<const char*(const char*)> variable;
  /// Stopped by Ctrl-C.
  std::stop_token stop;
  /// Ends the process on Ctrl-C while it waits for a line of input, which nothing else can stop.
  std::function<void()> leave;
};

}  // namespace docmem::cli
