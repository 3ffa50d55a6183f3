#include <string>

#include "client/cli/answer.h"
#include "client/cli/commands.h"
#include "client/cli/local_file.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"

namespace docmem::cli {
namespace {

constexpr uint64_t kMaxQuestionBytes = 65'536;

class AskCommand final : public Command {
 public:
  AskCommand() : Command("ask", "Ask a document a question; the answer streams") {
    Usage("ID QUESTION [options]");
    Usage("--route [--collection NAME] QUESTION [options]");
    Describe(
        "A QUESTION of - is read from standard input, without its last line feed. With --output "
        "json the answer is one "
        "object {\"started\", \"answer\", \"finished\"}.");
    arguments().Positional(Text("ID", &first_), "The document").required = true;
    arguments().Positional(Text("QUESTION", &second_), "What is asked").required = false;
    arguments().Flag("--route", &route_, "Choose the document of the collection by the question");
    memory_.Declare(&arguments());
    DeclareInstruction(&arguments(), &instruction_);
    answer_.Declare(&arguments());
  }

  absl::Status Run(Session& session) override {
    if (route_ && !second_.empty()) return UsageError("with --route only QUESTION is given, no ID");
    if (!route_ && second_.empty()) return UsageError("QUESTION is required");
    absl::StatusOr<v1::MemorySelection> memory = memory_.Build(route_ ? "" : first_);
    if (!memory.ok()) return memory.status();
    v1::AskRequest request;
    *request.mutable_memory() = *std::move(memory);
    std::string question = route_ ? first_ : second_;
    if (question == "-") {
      absl::StatusOr<std::string> text =
          ReadText(question, kMaxQuestionBytes, session.environment());
      if (!text.ok()) return text.status();
      question = *std::move(text);
    }
    request.mutable_prompt()->set_question(question);
    request.mutable_prompt()->set_instruction(instruction_);
    answer_.Fill(&request);
    const absl::StatusOr<client::Answer> answer = AskAndShow(session, request);
    if (answer.ok() && session.json()) {
      session.PrintJson(AnswerJson(*answer, request.log_probabilities()));
    }
    return answer.status();
  }

 private:
  std::string first_;
  std::string second_;
  bool route_ = false;
  std::string instruction_;
  MemoryArguments memory_;
  AnswerArguments answer_;
};

}  // namespace

std::unique_ptr<Command> MakeAskCommand() { return std::make_unique<AskCommand>(); }

}  // namespace docmem::cli
