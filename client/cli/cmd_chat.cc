#include <string>

#include "client/cli/answer.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/question_arguments.h"
#include "client/cli/report.h"
#include "client/cli/session.h"

namespace docmem::cli {
namespace {

constexpr int kMaxTurns = 64;

class ChatCommand final : public Command {
 public:
  ChatCommand() : Command("chat", "Ask a document one question after another") {
    Describe(
        "Every line of standard input is a question; earlier questions and answers stay in view. "
        "/clear forgets them, /quit or Ctrl-D ends. With --output json every answer is one object "
        "on a line of its own.");
    arguments().Positional(Text("ID", &document_), "The document");
    memory_.Declare(&arguments());
    DeclareInstruction(&arguments(), &instruction_);
    answer_.Declare(&arguments());
  }

  absl::Status Run(Session& session) override {
    absl::StatusOr<v1::MemorySelection> memory = memory_.Build(document_);
    if (!memory.ok()) return memory.status();
    v1::AskRequest request;
    *request.mutable_memory() = *std::move(memory);
    request.mutable_prompt()->set_instruction(instruction_);
    answer_.Fill(&request);
    std::string line;
    while (ReadLine(session, &line) && line != "/quit") {
      if (line == "/clear") {
        request.mutable_prompt()->clear_history();
      } else if (!line.empty()) {
        request.mutable_prompt()->set_question(line);
        const absl::Status status = IsUtf8(line) ? Answer(session, &request) : NotUtf8();
        if (session.environment().stop.stop_requested()) return status;
        if (!status.ok()) Tell(session, status);
      }
    }
    return absl::OkStatus();
  }

 private:
  bool ReadLine(const Session& session, std::string* line) {
    const Environment& environment = session.environment();
    const bool prompts = environment.in_is_terminal && session.terminal() != nullptr;
    if (prompts) session.err() << "> " << std::flush;
    const std::stop_callback leave(environment.stop, environment.leave);
    const bool read = static_cast<bool>(std::getline(*environment.in, *line));
    if (!read && prompts) session.err() << std::endl;
    return read;
  }

  static absl::Status NotUtf8() {
    return absl::InvalidArgumentError("the question isn't valid UTF-8");
  }

  // A question that fails is told and forgotten; the chat goes on.
  static void Tell(const Session& session, const absl::Status& status) {
    if (session.json()) {
      PrintErrorJson(status, session.err());
    } else {
      PrintError(status, session.err());
    }
  }

  static absl::Status Answer(const Session& session, v1::AskRequest* request) {
    const absl::StatusOr<client::Answer> answer = AskAndShow(session, *request);
    if (!answer.ok()) return answer.status();
    if (session.json()) {
      session.PrintJson(AnswerJson(*answer, request->log_probabilities()));
      session.out().flush();
    }
    auto* history = request->mutable_prompt()->mutable_history();
    if (history->size() == kMaxTurns) {
      history->DeleteSubrange(0, 1);
      session.Note("the oldest question is no longer in view");
    }
    v1::Turn* turn = history->Add();
    turn->set_question(request->prompt().question());
    turn->set_answer(answer->text);
    return absl::OkStatus();
  }

  std::string document_;
  std::string instruction_;
  MemoryArguments memory_;
  AnswerArguments answer_;
};

}  // namespace

std::unique_ptr<Command> MakeChatCommand() { return std::make_unique<ChatCommand>(); }

}  // namespace docmem::cli
