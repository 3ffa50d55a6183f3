#include <string>

#include "client/cli/commands.h"
#include "client/cli/document_view.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class ShowCommand final : public Command {
 public:
  ShowCommand() : Command("show", "Show a document with its caches") {
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
  }

  absl::Status Run(Session& session) override {
    v1::GetDocumentRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    client::DocumentClient client(session.connection());
    return session.Show(client.Get(request, session.call()), [&](const v1::Document& document) {
      PrintDocument(document, session.out());
    });
  }

 private:
  std::string document_;
  std::string collection_;
};

}  // namespace

std::unique_ptr<Command> MakeShowCommand() { return std::make_unique<ShowCommand>(); }

}  // namespace docmem::cli
