#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/backup_folder.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/exported_file.h"
#include "client/cli/json.h"
#include "client/cli/session.h"
#include "client/collection_client.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class BackupCommand final : public Command {
 public:
  BackupCommand() : Command("backup", "Write all documents into a folder, each as export would") {
    Describe(
        "What is in the folder and hasn't changed since isn't written again: repeated, it brings "
        "the folder up to date. The daemon goes on meanwhile. Trainings under way aren't part of "
        "it. restore reads the folder.");
    arguments().Positional(Path("FOLDER", &folder_), "Made where it doesn't exist");
    arguments().Option("--collection", Texts("NAME", &collections_), "Only this one; repeated");
    arguments().Flag("--prune", &prune_, "Delete the files of documents that are gone");
  }

  absl::Status Run(Session& session) override {
    const absl::StatusOr<std::vector<v1::Collection>> collections = Collections(session);
    if (!collections.ok()) return collections.status();
    for (const v1::Collection& collection : *collections) {
      if (absl::Status status = BackUp(session, collection); !status.ok()) return status;
    }
    if (session.json()) {
      session.PrintJson(JsonObject({{"documents", JsonString(absl::StrCat(documents_))},
                                    {"written", JsonString(absl::StrCat(written_))},
                                    {"bytes", JsonString(absl::StrCat(bytes_))},
                                    {"deleted", JsonString(absl::StrCat(deleted_))}}));
    } else {
      session.out() << folder_ << ": " << FormatCount(documents_, "document") << ", " << written_
                    << " written (" << FormatBytes(bytes_) << "), " << deleted_ << " deleted\n";
    }
    if (failed_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(FormatCount(failed_.size(), "document"),
                                            " couldn't be exported; the first: ", failed_[0]));
  }

 private:
  absl::StatusOr<std::vector<v1::Collection>> Collections(Session& session) const {
    client::CollectionClient client(session.connection());
    std::vector<v1::Collection> all;
    for (const std::string& name : collections_) {
      v1::GetCollectionRequest request;
      request.set_name(name);
      auto collection = client.Get(request, session.call());
      if (!collection.ok()) return collection.status();
      all.push_back(*std::move(collection));
    }
    v1::ListCollectionsRequest request;
    while (collections_.empty()) {
      const auto page = client.List(request, session.call());
      if (!page.ok()) return page.status();
      all.insert(all.end(), page->collections().begin(), page->collections().end());
      request.set_page_token(page->next_page_token());
      if (request.page_token().empty()) break;
    }
    return all;
  }

  absl::Status BackUp(Session& session, const v1::Collection& collection) {
    absl::StatusOr<CollectionBackup> backup = CollectionBackup::Of(folder_, collection.name());
    if (!backup.ok()) return backup.status();
    if (absl::Status status = backup->Open(collection); !status.ok()) return status;
    client::DocumentClient client(session.connection());
    v1::ListDocumentsRequest request;
    request.set_collection(collection.name());
    std::vector<std::string> ids;
    do {
      const auto page = client.List(request, session.call());
      if (!page.ok()) return page.status();
      for (const v1::Document& document : page->documents()) {
        ids.push_back(document.id());
        if (absl::Status status = Write(session, document, &*backup); !status.ok()) return status;
      }
      if (absl::Status status = backup->Save(); !status.ok()) return status;
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    documents_ += ids.size();
    return prune_ ? Prune(*backup, ids) : absl::OkStatus();
  }

  absl::Status Write(Session& session, const v1::Document& document, CollectionBackup* backup) {
    if (backup->Holds(document)) return absl::OkStatus();
    const absl::StatusOr<std::string> path = backup->PathOf(document.id());
    if (!path.ok()) return path.status();
    v1::ExportDocumentRequest request;
    request.set_collection(backup->name());
    request.set_document(document.id());
    const absl::StatusOr<uint64_t> bytes = WriteExportedFile(
        session, request, *path, absl::StrCat(backup->name(), "/", document.id(), ": "));
    const absl::Status status = bytes.status();
    if (absl::IsNotFound(status)) return absl::OkStatus();  // deleted since it was listed
    if (absl::IsDataLoss(status) || absl::IsFailedPrecondition(status)) {
      failed_.push_back(absl::StrCat(backup->name(), "/", document.id(), ": ", status.message()));
      session.Note(failed_.back());
      return absl::OkStatus();
    }
    if (!status.ok()) return status;
    backup->Remember(document);
    ++written_;
    bytes_ += *bytes;
    return absl::OkStatus();
  }

  absl::Status Prune(const CollectionBackup& backup, std::vector<std::string> ids) {
    std::sort(ids.begin(), ids.end());
    const absl::StatusOr<std::vector<std::string>> held = backup.Documents();
    if (!held.ok()) return held.status();
    for (const std::string& id : *held) {
      if (std::binary_search(ids.begin(), ids.end(), id)) continue;
      const absl::StatusOr<std::string> path = backup.PathOf(id);
      std::error_code error;
      if (path.ok() && std::filesystem::remove(*path, error)) ++deleted_;
      if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("can't delete ", *path));
    }
    return absl::OkStatus();
  }

  std::string folder_;
  std::vector<std::string> collections_;
  bool prune_ = false;

  uint64_t documents_ = 0;
  uint64_t written_ = 0;
  uint64_t bytes_ = 0;
  uint64_t deleted_ = 0;
  std::vector<std::string> failed_;
};

}  // namespace

std::unique_ptr<Command> MakeBackupCommand() { return std::make_unique<BackupCommand>(); }

}  // namespace docmem::cli
