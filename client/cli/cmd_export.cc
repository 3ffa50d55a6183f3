#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/exported_file.h"
#include "client/cli/json.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"

namespace docmem::cli {
namespace {

class ExportCommand final : public Command {
 public:
  ExportCommand() : Command("export", "Write a document with all its memories into one file") {
    Describe("The file appears under its name only when it is whole and checked. import reads it.");
    arguments().Positional(Text("ID", &document_), "The document");
    arguments().Positional(Path("FILE", &path_), "The file to write");
    DeclareCollection(&arguments(), &collection_);
  }

  absl::Status Run(Session& session) override {
    v1::ExportDocumentRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    const absl::StatusOr<uint64_t> bytes = WriteExportedFile(session, request, path_, "");
    if (!bytes.ok()) return bytes.status();
    if (session.json()) {
      session.PrintJson(
          JsonObject({{"file", JsonString(path_)}, {"bytes", JsonString(absl::StrCat(*bytes))}}));
    } else {
      session.out() << path_ << ": " << FormatBytes(*bytes) << '\n';
    }
    return absl::OkStatus();
  }

 private:
  std::string document_;
  std::string path_;
  std::string collection_;
};

}  // namespace

std::unique_ptr<Command> MakeExportCommand() { return std::make_unique<ExportCommand>(); }

}  // namespace docmem::cli
