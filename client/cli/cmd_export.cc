#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/cli/local_file.h"
#include "client/cli/progress_line.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

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
    LocalFileWriter file(path_);
    ProgressLine line(session.terminal());
    uint64_t bytes = 0;
    client::DocumentClient client(session.connection());
    absl::Status status = client.Export(
        request,
        [&](absl::string_view chunk) {
          bytes += chunk.size();
          line.Show(absl::StrCat("received ", FormatBytes(bytes)));
          return file.Write(chunk);
        },
        session.call());
    line.Clear();
    if (status.ok()) status = file.Commit();
    if (!status.ok()) return status;
    if (session.json()) {
      session.PrintJson(
          JsonObject({{"file", JsonString(path_)}, {"bytes", JsonString(absl::StrCat(bytes))}}));
    } else {
      session.out() << path_ << ": " << FormatBytes(bytes) << '\n';
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
