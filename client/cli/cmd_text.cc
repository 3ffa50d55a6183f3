#include <string>

#include "absl/status/status.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class TextCommand final : public Command {
 public:
  TextCommand() : Command("text", "Print a document's retained text") {
    Describe(
        "The text goes to standard output byte for byte; on a terminal its control characters "
        "are made visible. With --output json it is {\"text\": ...}.");
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
  }

  absl::Status Run(Session& session) override {
    v1::GetTextRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    const bool whole = session.json() || session.environment().out_is_terminal;
    std::string text;
    client::DocumentClient client(session.connection());
    absl::Status status = client.GetText(
        request,
        [&](absl::string_view bytes) {
          if (whole) {
            text.append(bytes.data(), bytes.size());
            return absl::OkStatus();
          }
          session.out() << bytes;
          return session.out() ? absl::OkStatus()
                               : absl::DataLossError("the output can't be written");
        },
        session.call());
    if (!status.ok() || !whole) return status;
    if (session.json()) {
      session.PrintJson(JsonObject({{"text", JsonString(text)}}));
    } else {
      session.out() << Printable(text) << (text.ends_with('\n') ? "" : "\n");
    }
    return absl::OkStatus();
  }

 private:
  std::string document_;
  std::string collection_;
};

}  // namespace

std::unique_ptr<Command> MakeTextCommand() { return std::make_unique<TextCommand>(); }

}  // namespace docmem::cli
