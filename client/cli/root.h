#pragma once

#include <string>

#include "client/cli/command.h"

namespace docmem::cli {

/// The program itself: the options of every command, and all commands.
class RootCommand final : public CommandGroup {
 public:
  RootCommand();

  const std::string& address() const { return address_; }        ///< empty: not given
  const std::string& token_file() const { return token_file_; }  ///< empty: not given
  bool json() const { return output_ == "json"; }
  double timeout_seconds() const { return timeout_seconds_; }  ///< 0: not given

 private:
  std::string address_;
  std::string token_file_;
  std::string output_ = "text";
  double timeout_seconds_ = 0;
};

}  // namespace docmem::cli
