#include <string>

#include "client/cli/commands.h"
#include "client/cli/document_view.h"
#include "client/cli/progress_line.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class ImportCommand final : public Command {
 public:
  ImportCommand() : Command("import", "Bring in a document that export wrote") {
    arguments().Positional(Path("FILE", &path_), "The exported file");
    arguments().Option("--id", Text("ID", &document_),
                       "The document's new id; else the one in the file");
    DeclareCollection(&arguments(), &collection_);
    arguments().Flag("--replace", &replace_, "Overwrite the document of this id: needs --revision");
    arguments().Option("--revision", Number("N", &revision_),
                       "With --replace: the document's revision that was seen");
  }

  absl::Status Run(Session& session) override {
    if (replace_ != (revision_ > 0)) return UsageError("--replace and --revision need each other");
    v1::ImportHeader header;
    header.set_collection(collection_);
    header.set_document(document_);
    header.set_replace(replace_);
    header.set_revision(revision_);
    client::DocumentClient client(session.connection());
    ProgressLine line(session.terminal());
    const auto document = client.Import(
        header, path_,
        [&](uint64_t sent, uint64_t total) {
          line.ShowBar("sending", static_cast<double>(sent) / static_cast<double>(total));
        },
        session.call());
    line.Clear();
    return session.Show(document,
                        [&](const v1::Document& done) { PrintDocument(done, session.out()); });
  }

 private:
  std::string path_;
  std::string document_;
  std::string collection_;
  bool replace_ = false;
  uint64_t revision_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeImportCommand() { return std::make_unique<ImportCommand>(); }

}  // namespace docmem::cli
