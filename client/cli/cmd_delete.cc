#include <string>

#include "client/cli/commands.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class DeleteCommand final : public Command {
 public:
  DeleteCommand() : Command("delete", "Delete a document with its text, caches and adapters") {
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
    arguments().Flag("--allow-missing", &allow_missing_, "An absent document is no error");
    arguments().Option("--revision", Number("N", &revision_),
                       "Refuse if the document has another revision");
  }

  absl::Status Run(Session& session) override {
    v1::DeleteDocumentRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.set_allow_missing(allow_missing_);
    request.set_revision(revision_);
    client::DocumentClient client(session.connection());
    return session.Show(
        client.Delete(request, session.call()), [&](const v1::DeleteDocumentResponse& reply) {
          session.out() << document_ << (reply.deleted() ? ": deleted\n" : ": not there\n");
        });
  }

 private:
  std::string document_;
  std::string collection_;
  bool allow_missing_ = false;
  uint64_t revision_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeDeleteCommand() { return std::make_unique<DeleteCommand>(); }

}  // namespace docmem::cli
