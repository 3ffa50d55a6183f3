#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/adapter_client.h"
#include "client/cli/adapter_view.h"
#include "client/cli/commands.h"
#include "client/cli/names.h"
#include "client/cli/progress_line.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"

namespace docmem::cli {
namespace {

namespace fs = std::filesystem;

// A pickled adapter is sent where it is the only form, so that the daemon says why it refuses it.
absl::StatusOr<std::vector<client::AdapterSource>> FilesOf(const std::string& folder) {
  std::vector<client::AdapterSource> files;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return absl::NotFoundError(absl::StrCat(folder, " isn't a folder"));
  }
  const auto add = [&](const std::string& name) {
    const fs::path path = fs::path(folder) / name;
    if (!fs::is_regular_file(path, error)) return false;
    files.push_back({name, path.string()});
    return true;
  };
  add("adapter_config.json");
  if (!add("adapter_model.safetensors")) add("adapter_model.bin");
  add("README.md");
  if (!files.empty()) return files;
  return absl::NotFoundError(
      absl::StrCat(folder, " has no adapter_config.json: it isn't an adapter in PEFT format"));
}

class AdapterUploadCommand final : public Command {
 public:
  AdapterUploadCommand() : Command("upload", "Bring in an adapter for a document") {
    Describe(
        "Sends adapter_config.json, adapter_model.safetensors and README.md of the folder. The "
        "new version becomes the current one.");
    arguments().Positional(Text("ID", &document_), "The document");
    arguments().Positional(Path("DIR", &folder_), "Folder with an adapter in PEFT format");
    DeclareCollection(&arguments(), &collection_);
    arguments().Option("--adapter-scope", OneOf("SCOPE", &scope_),
                       "Tokens it acts on; else from-bridge");
    arguments().Flag("--allow-other-base", &allow_other_base_,
                     "Accept another base model's name; shapes must fit all the same");
    arguments().Option("--prompt-format-digest", Text("SHA256", &prompt_format_digest_),
                       "Prompt format it was trained for; else the daemon's");
    arguments().Option("--text-digest", Text("SHA256", &text_digest_),
                       "Document text it was trained on; else the document's");
    arguments().Flag("--keep-current", &keep_current_, "Only store it");
  }

  absl::Status Run(Session& session) override {
    const auto files = FilesOf(folder_);
    if (!files.ok()) return files.status();
    v1::AdapterHeader header;
    header.set_collection(collection_);
    header.set_document(document_);
    header.set_scope(scope_);
    header.set_allow_other_base(allow_other_base_);
    header.set_prompt_format_digest(prompt_format_digest_);
    header.set_text_digest(text_digest_);
    header.set_keep_current(keep_current_);
    client::AdapterClient client(session.connection());
    ProgressLine line(session.terminal());
    const auto adapter = client.Upload(
        header, *files,
        [&](uint64_t sent, uint64_t total) {
          line.ShowBar("sending", static_cast<double>(sent) / static_cast<double>(total));
        },
        session.call());
    line.Clear();
    return session.Show(adapter,
                        [&](const v1::Adapter& done) { PrintAdapter(done, session.out()); });
  }

 private:
  std::string document_;
  std::string folder_;
  std::string collection_;
  v1::AdapterScope scope_ = v1::ADAPTER_SCOPE_UNSPECIFIED;
  bool allow_other_base_ = false;
  std::string prompt_format_digest_;
  std::string text_digest_;
  bool keep_current_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeAdapterUploadCommand() {
  return std::make_unique<AdapterUploadCommand>();
}

}  // namespace docmem::cli
