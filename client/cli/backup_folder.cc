#include "client/cli/backup_folder.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/json.h"
#include "client/cli/local_file.h"

namespace docmem::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kSettings[] = "collection.json";
constexpr char kStates[] = "documents.json";
constexpr char kExported[] = ".docmem";
constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

absl::Status CheckPlain(const std::string& name) {
  if (!name.empty() && name[0] != '.' && name.find('/') == std::string::npos) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("the daemon sent the id \"", name, "\""));
}

absl::Status Failed(const std::string& path, const std::error_code& error) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat("can't use ", path));
}

absl::Status WriteJson(const std::string& path, const google::protobuf::Message& message) {
  LocalFileWriter file(path);
  absl::Status status = file.Write(ToJson(message));
  if (status.ok()) status = file.Write("\n");
  return status.ok() ? file.Commit() : status;
}

template <class Message>
absl::StatusOr<Message> ReadJson(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadLocalFile(path, kMaxBytes);
  if (!text.ok()) return text.status();
  Message message;
  const auto read = google::protobuf::util::JsonStringToMessage(*text, &message);
  if (read.ok()) return message;
  return absl::DataLossError(absl::StrCat(path, " isn't what a backup writes"));
}

// All files of the folder's file system: the backup is many small ones.
absl::Status Sync(const std::string& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = file >= 0 && syncfs(file) == 0;
  const int error = errno;
  if (file >= 0) close(file);
  if (done) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("can't make durable what is in ", folder));
}

v1::Document StateOf(const v1::Document& document) {
  v1::Document state;
  state.set_id(document.id());
  state.set_revision(document.revision());
  *state.mutable_create_time() = document.create_time();
  *state.mutable_update_time() = document.update_time();
  return state;
}

}  // namespace

absl::StatusOr<CollectionBackup> CollectionBackup::Of(const std::string& folder,
                                                      const std::string& name) {
  if (absl::Status status = CheckPlain(name); !status.ok()) return status;
  return CollectionBackup(folder + "/" + name, name);
}

absl::StatusOr<std::vector<std::string>> CollectionBackup::Names(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code none;
    if (fs::exists(entry.path() / kSettings, none)) names.push_back(entry.path().filename());
  }
  if (error) return Failed(folder, error);
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, " holds no backup of a collection"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<v1::Collection> CollectionBackup::ReadSettings() const {
  return ReadJson<v1::Collection>(absl::StrCat(folder_, "/", kSettings));
}

absl::Status CollectionBackup::Open(const v1::Collection& settings) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return Failed(folder_, error);
  const std::string states = absl::StrCat(folder_, "/", kStates);
  if (fs::exists(states, error)) {
    const auto known = ReadJson<v1::ListDocumentsResponse>(states);
    if (!known.ok()) return known.status();
    for (const v1::Document& document : known->documents()) Remember(document);
  }
  return WriteJson(absl::StrCat(folder_, "/", kSettings), settings);
}

absl::StatusOr<std::string> CollectionBackup::PathOf(const std::string& document) const {
  if (absl::Status status = CheckPlain(document); !status.ok()) return status;
  return absl::StrCat(folder_, "/", document, kExported);
}

bool CollectionBackup::Holds(const v1::Document& document) const {
  const auto known = known_.find(document.id());
  const absl::StatusOr<std::string> path = PathOf(document.id());
  std::error_code none;
  return known != known_.end() && path.ok() && fs::exists(*path, none) &&
         google::protobuf::util::MessageDifferencer::Equals(known->second, StateOf(document));
}

void CollectionBackup::Remember(const v1::Document& document) {
  known_[document.id()] = StateOf(document);
}

absl::Status CollectionBackup::Save() const {
  if (absl::Status status = Sync(folder_); !status.ok()) return status;
  v1::ListDocumentsResponse states;
  for (const auto& [id, state] : known_) *states.add_documents() = state;
  absl::Status status = WriteJson(absl::StrCat(folder_, "/", kStates), states);
  return status.ok() ? Sync(folder_) : status;
}

absl::StatusOr<std::vector<std::string>> CollectionBackup::Documents() const {
  std::error_code error;
  std::vector<std::string> ids;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename();
    if (absl::EndsWith(name, kExported)) ids.push_back(entry.path().stem());
  }
  if (error) return Failed(folder_, error);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace docmem::cli
