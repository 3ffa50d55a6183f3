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
  bool insecure() const { return insecure_; }

  /// Files and a name; empty: not given.
  struct Tls {
    bool wanted = false;
    std::string ca;
    std::string certificate;
    std::string key;
    std::string server_name;
  };
  const Tls& tls() const { return tls_; }
  bool json() const { return output_ == "json"; }
  double timeout_seconds() const { return timeout_seconds_; }  ///< 0: not given

 private:
  std::string address_;
  std::string token_file_;
  bool insecure_ = false;
  Tls tls_;
  std::string output_ = "text";
  double timeout_seconds_ = 0;
};

}  // namespace docmem::cli
