#include <string>

#include "client/cli/commands.h"
#include "client/cli/completion.h"
#include "client/cli/session.h"

namespace docmem::cli {
namespace {

class CompletionCommand final : public Command {
 public:
  explicit CompletionCommand(const Command* root)
      : Command("completion", "Print a script that completes docmem's commands in a shell"),
        root_(*root) {
    Describe(
        "bash: source <(docmem completion bash)\nzsh: source <(docmem completion zsh)\n"
        "fish: docmem completion fish | source");
    arguments().Positional(Choice("SHELL", {"bash", "zsh", "fish"}, &shell_), "The shell");
  }

  bool NeedsConnection() const override { return false; }

  absl::Status Run(Session& session) override {
    if (shell_ == "bash") session.out() << BashCompletion(root_);
    if (shell_ == "zsh") session.out() << ZshCompletion(root_);
    if (shell_ == "fish") session.out() << FishCompletion(root_);
    return absl::OkStatus();
  }

 private:
  const Command& root_;
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> MakeCompletionCommand(const Command* root) {
  return std::make_unique<CompletionCommand>(root);
}

}  // namespace docmem::cli
