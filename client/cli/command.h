#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/arguments.h"

namespace docmem::cli {

class Session;

/// One command, or a group of commands such as `cache`. Declares its arguments in its constructor;
/// they are parsed into its members before `Run`.
class Command {
 public:
  /// `summary` is one line for the list of commands, without a full stop.
  Command(std::string name, std::string summary)
      : name_(std::move(name)), summary_(std::move(summary)) {}
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// Does it. Of a group: never called.
  virtual absl::Status Run(Session& session) = 0;

  /// False for what needs no daemon.
  virtual bool NeedsConnection() const { return true; }
  /// False for what asks an address that is plain and asks for nothing: it is sent no token.
  virtual bool NeedsCredentials() const { return true; }

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }
  const std::string& description() const { return description_; }
  const std::vector<std::string>& usages() const { return usages_; }
  const std::vector<Argument>& declared() const { return arguments_.all(); }
  const std::vector<std::unique_ptr<Command>>& commands() const { return commands_; }

 protected:
  ArgumentList& arguments() { return arguments_; }
  /// Paragraphs below the usage in the help.
  void Describe(std::string text) { description_ = std::move(text); }
  /// What stands behind the command's name, where it doesn't follow from the arguments.
  void Usage(std::string text) { usages_.push_back(std::move(text)); }
  void Add(std::unique_ptr<Command> command) { commands_.push_back(std::move(command)); }

 private:
  const std::string name_;
  const std::string summary_;
  std::string description_;
  std::vector<std::string> usages_;
  ArgumentList arguments_;
  std::vector<std::unique_ptr<Command>> commands_;
};

/// A command that only holds others.
class CommandGroup : public Command {
 public:
  using Command::Add;
  using Command::Command;
  absl::Status Run(Session&) override { return absl::InternalError("a group doesn't run"); }
};

/// What the user can mend by other arguments: exit code 2.
absl::Status UsageError(const std::string& message);
bool IsUsageError(const absl::Status& status);

}  // namespace docmem::cli
