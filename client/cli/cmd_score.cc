#include <string>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/names.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/query_client.h"

namespace docmem::cli {
namespace {

class ScoreCommand final : public Command {
 public:
  ScoreCommand() : Command("score", "Log-probabilities of a given answer to a question") {
    Describe(
        "Prints one line for each token of the answer and one for the end of turn: token id "
        "and log-probability; last their sum.");
    arguments().Positional(Text("ID", &document_), "The document");
    arguments().Positional(Text("QUESTION", &question_), "What is asked");
    arguments().Positional(Text("ANSWER", &answer_), "The answer that is scored");
    memory_.Declare(&arguments());
    DeclareInstruction(&arguments(), &instruction_);
  }

  absl::Status Run(Session& session) override {
    absl::StatusOr<v1::MemorySelection> memory = memory_.Build(document_);
    if (!memory.ok()) return memory.status();
    v1::ScoreRequest request;
    *request.mutable_memory() = *std::move(memory);
    request.mutable_prompt()->set_question(question_);
    request.mutable_prompt()->set_instruction(instruction_);
    request.set_answer(answer_);
    client::QueryClient queries(session.connection());
    return session.Show(
        queries.Score(request, session.call()), [&](const v1::ScoreResponse& score) {
          for (const v1::TokenLogProbability& token : score.tokens()) {
            session.out() << absl::StrFormat("%8d  %.6f\n", token.token_id(),
                                             token.log_probability());
          }
          session.out() << absl::StrFormat("%8s  %.6f\n", "sum", score.log_probability());
        });
  }

 private:
  std::string document_;
  std::string question_;
  std::string answer_;
  std::string instruction_;
  MemoryArguments memory_;
};

}  // namespace

std::unique_ptr<Command> MakeScoreCommand() { return std::make_unique<ScoreCommand>(); }

}  // namespace docmem::cli
