#include "adapter_store/publisher.h"

#include <algorithm>
#include <map>
#include <utility>

#include "adapter_store/registry/artifact_tables.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr char kSpareFile[] = "spare";
constexpr size_t kSpareBytes = size_t{4} << 20;

std::vector<FileRef> RefsOf(const Intent& intent) {
  std::vector<FileRef> refs;
  refs.reserve(intent.files.size());
  for (const IntentFile& file : intent.files) refs.push_back({file.id, file.kind});
  return refs;
}

}  // namespace

WrittenBatch::~WrittenBatch() {
  if (publisher_ == nullptr) return;
  for (const Intent& intent : intents_) publisher_->Abandon(intent);
}

void WrittenBatch::Join(std::unique_ptr<WrittenBatch> other) {
  intents_.insert(intents_.end(), other->intents_.begin(), other->intents_.end());
  files_.insert(files_.end(), other->files_.begin(), other->files_.end());
  other->publisher_ = nullptr;
}

absl::StatusOr<std::unique_ptr<WrittenBatch>> Publisher::Write(
    const std::vector<PlannedFile>& planned) {
  Intent intent = NewIntent(IntentAction::kPublish);
  std::vector<DiskReservation> reservations;
  for (const PlannedFile& plan : planned) {
    intent.files.push_back({0, plan.kind});
    STORE_ASSIGN_OR_RETURN(DiskReservation reservation,
                           options_.artifacts->Reserve(plan.file->max_bytes));
    reservations.push_back(std::move(reservation));
  }
  STORE_RETURN_IF_ERROR(options_.registry->Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(intent, BeginPublication(sql, intent));
    return absl::OkStatus();
  }));
  auto batch = std::make_unique<WrittenBatch>(this);
  batch->intents_.push_back(std::move(intent));
  STORE_RETURN_IF_ERROR(WriteAll(*batch, std::move(reservations), planned));
  return batch;
}

absl::Status Publisher::WriteAll(WrittenBatch& batch, std::vector<DiskReservation> reservations,
                                 const std::vector<PlannedFile>& planned) const {
  const std::vector<FileRef> refs = RefsOf(batch.intents_.front());
  for (size_t i = 0; i < planned.size(); ++i) {
    const NewFile& file = *planned[i].file;
    STORE_ASSIGN_OR_RETURN(
        WrittenFile written,
        options_.artifacts->Write(refs[i], std::move(reservations[i]), file.producer));
    batch.files_.push_back({refs[i].id, refs[i].kind, file.name, written.bytes, written.digest});
  }
  return options_.artifacts->Publish(batch.files_);
}

absl::Status Publisher::Commit(WrittenBatch* batch, Body body) {
  Intent deletion;
  bool body_done = false;
  const absl::Status status = options_.registry->Write([&](Sql& sql) -> absl::Status {
    body_done = false;
    deletion = NewIntent(IntentAction::kDelete);
    STORE_RETURN_IF_ERROR(body(sql, deletion.files));
    if (batch != nullptr) {
      for (const Intent& intent : batch->intents_) {
        STORE_RETURN_IF_ERROR(EndPublication(sql, intent.id));
      }
    }
    if (!deletion.files.empty()) {
      STORE_ASSIGN_OR_RETURN(deletion.id, BeginDeletion(sql, deletion));
    }
    body_done = true;
    return absl::OkStatus();
  });
  // A commit that failed on its way to the disk may be there after the next start: then the files
  // must be there too. The next start knows.
  const bool unknown = !status.ok() && body_done && !absl::IsResourceExhausted(status);
  if (batch != nullptr && (status.ok() || unknown)) batch->publisher_ = nullptr;
  STORE_RETURN_IF_ERROR(status);
  // What can't be deleted now stays in its intent for `CollectGarbage`.
  if (!deletion.files.empty()) FinishDeletion(deletion).IgnoreError();
  return absl::OkStatus();
}

absl::Status Publisher::Delete(Body body) {
  absl::Status status = Commit(nullptr, body);
  if (!absl::IsResourceExhausted(status)) return status;
  if (!options_.files->Remove(kSpareFile).ok()) return status;
  status = Commit(nullptr, body);
  KeepSpare().IgnoreError();
  return status;
}

absl::Status Publisher::KeepSpare() const {
  const absl::StatusOr<FileEntry> entry = options_.files->Stat(kSpareFile);
  if (entry.ok() && entry->bytes >= kSpareBytes) return absl::OkStatus();
  if (entry.ok()) STORE_RETURN_IF_ERROR(options_.files->Remove(kSpareFile));
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, options_.files->Create(kSpareFile));
  STORE_RETURN_IF_ERROR(file->Append(std::vector<std::byte>(kSpareBytes)));
  return file->Sync();
}

void Publisher::Abandon(const Intent& intent) const {
  if (FinishDeletion(intent).ok()) return;
  options_.registry
      ->Write([&](Sql& sql) { return SetIntentAction(sql, intent.id, IntentAction::kDelete); })
      .IgnoreError();
}

absl::Status Publisher::FinishDeletion(const Intent& intent) const {
  const std::vector<FileRef> refs = RefsOf(intent);
  absl::Status removed;
  for (const FileRef& ref : refs) removed.Update(options_.artifacts->Remove(ref).status());
  STORE_RETURN_IF_ERROR(removed);
  // Else a loss of power could bring back files that nothing names any more.
  STORE_RETURN_IF_ERROR(options_.artifacts->SyncRemovals(refs));
  return options_.registry->Write([&](Sql& sql) { return DeleteIntent(sql, intent.id); });
}

Publisher::Fate Publisher::FateOf(const Intent& intent) const {
  if (intent.instance != options_.instance) {
    return intent.expires > options_.clock() ? Fate::kKeep : Fate::kDeleteWhenOld;
  }
  if (intent.action == IntentAction::kDelete) return Fate::kDelete;
  return intent.generation < options_.generation ? Fate::kDelete : Fate::kKeep;
}

absl::Status Publisher::CollectGarbage() {
  // Files first: one that is published after the listing has its row or intent by then.
  STORE_ASSIGN_OR_RETURN(const std::vector<FoundFile> found, options_.artifacts->List());
  std::vector<int64_t> rows;
  std::vector<Intent> intents;
  STORE_RETURN_IF_ERROR(options_.registry->Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(rows, AllFileIds(sql));
    STORE_ASSIGN_OR_RETURN(intents, AllIntents(sql));
    return absl::OkStatus();
  }));
  std::map<int64_t, Fate> fates;
  for (const Intent& intent : intents) {
    for (const IntentFile& file : intent.files) fates[file.id] = FateOf(intent);
  }
  absl::Status result;
  for (const FoundFile& file : found) {
    if (std::binary_search(rows.begin(), rows.end(), file.ref.id)) continue;
    const auto fate = fates.find(file.ref.id);
    if (fate != fates.end() && fate->second == Fate::kKeep) continue;
    const bool old = options_.clock() - file.modified >= options_.orphan_age;
    if (!old && (fate == fates.end() || fate->second == Fate::kDeleteWhenOld)) continue;
    const absl::StatusOr<uint64_t> removed = options_.artifacts->RemoveStray(file.ref);
    result.Update(removed.status());
    if (!removed.ok()) continue;
    ++orphans_collected_;
    orphan_bytes_collected_ += *removed;
  }
  for (const Intent& intent : intents) {
    const Fate fate = FateOf(intent);
    const bool old = options_.clock() - intent.expires >= options_.orphan_age;
    if (fate == Fate::kDelete || (fate == Fate::kDeleteWhenOld && old)) {
      result.Update(FinishDeletion(intent));
    }
  }
  return result;
}

Intent Publisher::NewIntent(IntentAction action) const {
  Intent intent;
  intent.action = action;
  intent.instance = options_.instance;
  intent.generation = options_.generation;
  intent.expires = options_.clock() + options_.publish_timeout;
  return intent;
}

}  // namespace docmem::store
