#include <string>

#include "client/cli/commands.h"
#include "client/cli/document_view.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class PinCommand final : public Command {
 public:
  PinCommand(const std::string& name, const std::string& summary, bool pinned)
      : Command(name, summary), pinned_(pinned) {
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
  }

  absl::Status Run(Session& session) override {
    v1::UpdateDocumentRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.mutable_values()->set_pinned(pinned_);
    request.mutable_update_mask()->add_paths("pinned");
    client::DocumentClient client(session.connection());
    return session.Show(client.Update(request, session.call()), [&](const v1::Document& document) {
      session.out() << DocumentLine(document) << ", " << (pinned_ ? "pinned" : "not pinned")
                    << '\n';
    });
  }

 private:
  const bool pinned_;
  std::string document_;
  std::string collection_;
};

}  // namespace

std::unique_ptr<Command> MakePinCommand() {
  return std::make_unique<PinCommand>(
      "pin", "Keep a document's default cache and current adapter loaded", true);
}

std::unique_ptr<Command> MakeUnpinCommand() {
  return std::make_unique<PinCommand>("unpin", "Let a document's memories be unloaded", false);
}

}  // namespace docmem::cli
