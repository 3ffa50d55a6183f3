#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/backup_folder.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/cli/progress_line.h"
#include "client/cli/session.h"
#include "client/collection_client.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class RestoreCommand final : public Command {
 public:
  RestoreCommand() : Command("restore", "Bring in the documents of a folder that backup wrote") {
    Describe(
        "Documents that the daemon has already stay as they are, so that it can be repeated. A "
        "collection gets the settings of the backup unless somebody has set its own.");
    arguments().Positional(Path("FOLDER", &folder_), "As backup wrote it");
    arguments().Option("--collection", Texts("NAME", &collections_), "Only this one; repeated");
  }

  absl::Status Run(Session& session) override {
    std::vector<std::string> names = collections_;
    if (names.empty()) {
      absl::StatusOr<std::vector<std::string>> all = CollectionBackup::Names(folder_);
      if (!all.ok()) return all.status();
      names = *std::move(all);
    }
    for (const std::string& name : names) {
      if (absl::Status status = Restore(session, name); !status.ok()) return status;
    }
    if (session.json()) {
      session.PrintJson(JsonObject({{"restored", JsonString(absl::StrCat(restored_))},
                                    {"present", JsonString(absl::StrCat(present_))}}));
    } else {
      session.out() << folder_ << ": " << FormatCount(restored_, "document") << " restored, "
                    << present_ << " there already\n";
    }
    if (failed_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(FormatCount(failed_.size(), "document"),
                                            " couldn't be restored; the first: ", failed_[0]));
  }

 private:
  absl::Status Restore(Session& session, const std::string& name) {
    const absl::StatusOr<CollectionBackup> backup = CollectionBackup::Of(folder_, name);
    if (!backup.ok()) return backup.status();
    const absl::StatusOr<v1::Collection> settings = backup->ReadSettings();
    if (!settings.ok()) return settings.status();
    absl::Status status = MakeCollection(session, name, settings->settings());
    if (!status.ok()) return status;
    const absl::StatusOr<std::vector<std::string>> ids = backup->Documents();
    if (!ids.ok()) return ids.status();
    ProgressLine line(session.terminal());
    for (size_t i = 0; i < ids->size(); ++i) {
      line.ShowBar(absl::StrCat("restoring ", name),
                   static_cast<double>(i) / static_cast<double>(ids->size()), (*ids)[i]);
      status = Import(session, *backup, (*ids)[i]);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  static absl::Status MakeCollection(Session& session, const std::string& name,
                                     const v1::CollectionSettings& settings) {
    client::CollectionClient client(session.connection());
    v1::CreateCollectionRequest request;
    request.set_name(name);
    *request.mutable_settings() = settings;
    const absl::Status made = client.Create(request, session.call()).status();
    if (!absl::IsAlreadyExists(made)) return made;
    v1::GetCollectionRequest get;
    get.set_name(name);
    const absl::StatusOr<v1::Collection> there = client.Get(get, session.call());
    if (!there.ok() || there->revision() != 1) return there.status();
    v1::UpdateCollectionRequest update;
    update.set_name(name);
    update.set_revision(1);
    *update.mutable_settings() = settings;
    for (const char* path :
         {"retain_text", "lexical_index", "limits.max_in_flight", "limits.max_queued",
          "limits.max_bytes", "limits.max_documents", "default_ratio_ppm", "default_mode"}) {
      update.mutable_update_mask()->add_paths(path);
    }
    return client.Update(update, session.call()).status();
  }

  // A file that the daemon refuses doesn't keep the others from coming back.
  absl::Status Import(Session& session, const CollectionBackup& backup, const std::string& id) {
    const absl::StatusOr<std::string> path = backup.PathOf(id);
    if (!path.ok()) return path.status();
    v1::ImportHeader header;
    header.set_collection(backup.name());
    header.set_document(id);
    client::DocumentClient client(session.connection());
    const absl::Status status = client.Import(header, *path, nullptr, session.call()).status();
    if (absl::IsAlreadyExists(status)) {
      ++present_;
    } else if (absl::IsInvalidArgument(status) || absl::IsDataLoss(status) ||
               absl::IsFailedPrecondition(status)) {
      failed_.push_back(absl::StrCat(*path, ": ", status.message()));
      session.Note(failed_.back());
    } else if (status.ok()) {
      ++restored_;
    } else {
      return status;
    }
    return absl::OkStatus();
  }

  std::string folder_;
  std::vector<std::string> collections_;

  uint64_t restored_ = 0;
  uint64_t present_ = 0;
  std::vector<std::string> failed_;
};

}  // namespace

std::unique_ptr<Command> MakeRestoreCommand() { return std::make_unique<RestoreCommand>(); }

}  // namespace docmem::cli
