#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/adapter_client.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"

namespace docmem::cli {
namespace {

namespace fs = std::filesystem;

// Collects the files in a folder beside the wished one, which appears only when all are there.
class FolderSink final : public client::AdapterSink {
 public:
  explicit FolderSink(const std::string& folder) : folder_(folder), part_(folder + ".part") {}

  ~FolderSink() override {
    std::error_code error;
    fs::remove_all(part_, error);
  }

  absl::Status Begin() {
    std::error_code error;
    if (fs::exists(folder_, error)) {
      return absl::AlreadyExistsError(absl::StrCat(folder_.string(), " exists already"));
    }
    fs::remove_all(part_, error);
    if (!fs::create_directories(part_, error)) return Failed(part_, error);
    return absl::OkStatus();
  }

  absl::Status BeginFile(const v1::AdapterFile& file) override {
    const bool plain =
        !file.name().empty() && file.name()[0] != '.' && file.name().find('/') == std::string::npos;
    if (!plain) {
      return absl::DataLossError(
          absl::StrCat("the daemon sent a file named \"", file.name(), "\""));
    }
    if (absl::Status status = EndFile(); !status.ok()) return status;
    file_.open(part_ / file.name(), std::ios::binary | std::ios::trunc);
    names.push_back(file.name());
    return Check();
  }

  absl::Status Write(absl::string_view bytes) override {
    file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    total_bytes += bytes.size();
    return Check();
  }

  absl::Status Commit() {
    if (absl::Status status = EndFile(); !status.ok()) return status;
    std::error_code error;
    fs::rename(part_, folder_, error);
    return error ? Failed(folder_, error) : absl::OkStatus();
  }

  std::vector<std::string> names;
  uint64_t total_bytes = 0;

 private:
  static absl::Status Failed(const fs::path& path, const std::error_code& error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("can't write ", path.string()));
  }

  absl::Status EndFile() {
    if (!file_.is_open()) return absl::OkStatus();
    file_.close();
    return Check();
  }

  absl::Status Check() const {
    return file_ ? absl::OkStatus()
                 : absl::ErrnoToStatus(errno, absl::StrCat("can't write in ", part_.string()));
  }

  const fs::path folder_;
  const fs::path part_;
  std::ofstream file_;
};

class AdapterDownloadCommand final : public Command {
 public:
  AdapterDownloadCommand()
      : Command("download", "Write an adapter into a new folder, in PEFT format") {
    arguments().Positional(Text("ID", &document_), "The document");
    arguments().Positional(Path("DIR", &folder_), "The folder to make");
    arguments().Option("--adapter", Number("VERSION", &version_),
                       "The version; else the current one");
    DeclareCollection(&arguments(), &collection_);
  }

  absl::Status Run(Session& session) override {
    v1::DownloadAdapterRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.set_version(version_);
    FolderSink sink(folder_);
    absl::Status status = sink.Begin();
    if (!status.ok()) return status;
    client::AdapterClient client(session.connection());
    status = client.Download(request, &sink, session.call());
    if (status.ok()) status = sink.Commit();
    if (!status.ok()) return status;
    if (session.json()) {
      std::vector<std::string> names;
      names.reserve(sink.names.size());
      for (const std::string& name : sink.names) names.push_back(JsonString(name));
      session.PrintJson(JsonObject({{"folder", JsonString(folder_)},
                                    {"files", JsonArray(names)},
                                    {"bytes", JsonString(absl::StrCat(sink.total_bytes))}}));
    } else {
      session.out() << folder_ << ": " << FormatCount(sink.names.size(), "file") << ", "
                    << FormatBytes(sink.total_bytes) << '\n';
    }
    return absl::OkStatus();
  }

 private:
  std::string document_;
  std::string folder_;
  uint32_t version_ = 0;
  std::string collection_;
};

}  // namespace

std::unique_ptr<Command> MakeAdapterDownloadCommand() {
  return std::make_unique<AdapterDownloadCommand>();
}

}  // namespace docmem::cli
