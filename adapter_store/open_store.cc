#include <openssl/rand.h>

#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "adapter_store/document_rows.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/local_artifact_files.h"
#include "adapter_store/files/object_store.h"
#include "adapter_store/files/shared_artifact_files.h"
#include "adapter_store/names.h"
#include "adapter_store/registry/training_job_table.h"
#include "adapter_store/registry/word_table.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/store_impl.h"

namespace docmem::store {
namespace {

constexpr char kLockFile[] = "lock";
constexpr char kInstanceFile[] = "instance";
constexpr char kNewInstanceFile[] = "instance.new";
constexpr char kRegistryFile[] = "registry.db";
constexpr char kOwnerKey[] = "data_folder";
constexpr char kSharedKey[] = "shared_artifacts";
constexpr char kPlacerKey[] = "shared_artifacts_placer";
// Between the first replica's entry in the registry and the object in the place.
constexpr absl::Duration kPlacerPatience = absl::Seconds(10);
constexpr size_t kInstanceBytes = 16;
constexpr size_t kMaxInstanceFile = 256;

void SystemRandom(std::span<std::byte> buffer) {
  RAND_bytes(reinterpret_cast<unsigned char*>(buffer.data()), static_cast<int>(buffer.size()));
}

std::function<void(std::span<std::byte>)> RandomOf(const AdapterStoreOptions& options) {
  return options.random != nullptr ? options.random : SystemRandom;
}

absl::StatusOr<std::string> MakeInstance(FileSystem& files,
                                         const std::function<void(std::span<std::byte>)>& random) {
  std::string bytes(kInstanceBytes, '\0');
  random(std::as_writable_bytes(std::span<char>(bytes)));
  std::string instance = absl::BytesToHexString(bytes);
  const absl::Status removed = files.Remove(kNewInstanceFile);
  if (!absl::IsNotFound(removed)) STORE_RETURN_IF_ERROR(removed);
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(kNewInstanceFile));
  STORE_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span<const char>(instance))));
  STORE_RETURN_IF_ERROR(file->Sync());
  STORE_RETURN_IF_ERROR(files.Rename(kNewInstanceFile, kInstanceFile));
  STORE_RETURN_IF_ERROR(files.SyncFolder(""));
  return instance;
}

// Names this data folder for good, so that after a crash it knows its own intents.
absl::StatusOr<std::string> InstanceOf(FileSystem& files,
                                       const std::function<void(std::span<std::byte>)>& random) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(kInstanceFile);
  if (absl::IsNotFound(file.status())) return MakeInstance(files, random);
  STORE_RETURN_IF_ERROR(file.status());
  std::string instance(std::min<uint64_t>((*file)->bytes(), kMaxInstanceFile), '\0');
  STORE_RETURN_IF_ERROR((*file)->Read(0, std::as_writable_bytes(std::span<char>(instance))));
  if (CheckHex(kInstanceFile, instance, 2 * kInstanceBytes).ok()) return instance;
  return absl::DataLossError(
      "the file 'instance' in the data folder is damaged; delete it to give the folder a new one");
}

absl::StatusOr<uint64_t> NextGeneration(Registry& registry, const std::string& instance) {
  const std::string key = absl::StrCat("generation.", instance);
  uint64_t generation = 0;
  STORE_RETURN_IF_ERROR(registry.Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const std::optional<std::string> last, FindSetting(sql, key));
    generation = 0;
    if (last.has_value()) {
      std::from_chars(last->data(), last->data() + last->size(), generation);
    }
    ++generation;
    return PutSettingRow(sql, key, absl::StrCat(generation));
  }));
  return generation;
}

// A registry outside of the data folder could be opened with another one, which lacks the files.
absl::Status Claim(Registry& registry, const std::string& instance) {
  return registry.Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const std::optional<std::string> shared, FindSetting(sql, kSharedKey));
    if (shared.has_value()) {
      return absl::FailedPreconditionError(
          "the artifacts of this registry lie in a place that replicas share; name that place");
    }
    STORE_ASSIGN_OR_RETURN(const std::optional<std::string> owner, FindSetting(sql, kOwnerKey));
    if (!owner.has_value()) return PutSettingRow(sql, kOwnerKey, instance);
    if (*owner == instance) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "the registry belongs to another data folder: its file 'instance' says ", *owner,
        ", here it says ", instance, "; use that folder, or another database or schema"));
  });
}

// What the registry knows about the shared place.
struct SharedPlace {
  std::string identity;
  std::string placer;  // the instance that is to put the identity there; empty: it is there
};

absl::StatusOr<SharedPlace> ClaimPlace(Registry& registry, const std::string& instance,
                                       const std::string& fresh, bool is_new) {
  SharedPlace place;
  STORE_RETURN_IF_ERROR(registry.Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const std::optional<std::string> owner, FindSetting(sql, kOwnerKey));
    if (owner.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the artifacts of this registry lie in the data folder whose file 'instance' says ",
          *owner, "; restore a backup of it into a new registry with a shared place"));
    }
    STORE_ASSIGN_OR_RETURN(const std::optional<std::string> identity, FindSetting(sql, kSharedKey));
    STORE_ASSIGN_OR_RETURN(const std::optional<std::string> placer, FindSetting(sql, kPlacerKey));
    place = {identity.value_or(fresh), placer.value_or(instance)};
    if (identity.has_value()) return absl::OkStatus();
    if (!is_new) {
      return absl::FailedPreconditionError(
          "the shared place belongs to another registry; use that one, or another place");
    }
    STORE_RETURN_IF_ERROR(PutSettingRow(sql, kSharedKey, place.identity));
    return PutSettingRow(sql, kPlacerKey, place.placer);
  }));
  return place;
}

// Ties registry and shared place to each other. Only the replica that came first puts the identity
// there, once: another one that doesn't see it looks at the wrong place.
absl::StatusOr<std::string> ClaimShared(Registry& registry, ObjectStore& objects,
                                        const std::string& instance, const std::string& fresh) {
  absl::StatusOr<std::string> found = IdentityOf(objects);
  if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  STORE_ASSIGN_OR_RETURN(const SharedPlace place,
                         ClaimPlace(registry, instance, fresh, !found.ok()));
  if (place.placer == instance && !found.ok()) {
    STORE_RETURN_IF_ERROR(PutIdentity(objects, place.identity));
    found = place.identity;
  }
  const absl::Time end = absl::Now() + kPlacerPatience;
  while (absl::IsNotFound(found.status()) && !place.placer.empty() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(100));
    found = IdentityOf(objects);
  }
  if (absl::IsNotFound(found.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("the shared place lacks the object 'identity', which says ", place.identity,
                     ": is the volume mounted, are bucket and prefix right?"));
  }
  STORE_RETURN_IF_ERROR(found.status());
  if (*found != place.identity) {
    return absl::FailedPreconditionError(
        absl::StrCat("the shared place belongs to another registry: its object 'identity' says ",
                     *found, ", this registry's artifacts are in ", place.identity));
  }
  if (place.placer.empty()) return place.identity;
  STORE_RETURN_IF_ERROR(
      registry.Write([](Sql& sql) { return PutSettingRow(sql, kPlacerKey, ""); }));
  return place.identity;
}

absl::StatusOr<std::unique_ptr<Registry>> OpenRegistry(const AdapterStoreOptions& options,
                                                       FileSystem& files) {
  if (!options.postgres.empty()) {
    // Its files would be garbage to the other registry.
    if (files.Stat(kRegistryFile).ok()) {
      return absl::FailedPreconditionError(
          "the data folder has a registry of its own, registry.db; use another folder, and a "
          "backup to bring the documents along");
    }
    return OpenPostgresRegistry(options.postgres);
  }
  // SQLite would make it readable for others, as the process's mask allows.
  if (absl::IsNotFound(files.Stat(kRegistryFile).status())) {
    STORE_RETURN_IF_ERROR(files.Create(kRegistryFile).status());
  }
  return OpenSqliteRegistry(absl::StrCat(options.folder, "/", kRegistryFile));
}

absl::StatusOr<std::unique_ptr<ArtifactFiles>> OpenArtifacts(const AdapterStoreOptions& options,
                                                             FileSystem& files, Registry& registry,
                                                             const std::string& instance) {
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<LocalArtifactFiles> local,
                         LocalArtifactFiles::Open(&files, options.budget_bytes));
  std::shared_ptr<ObjectStore> objects = options.objects;
  if (objects == nullptr && !options.artifacts.empty()) {
    STORE_ASSIGN_OR_RETURN(objects, OpenObjectStore(options.artifacts));
  }
  if (objects == nullptr) {
    if (!options.postgres.empty()) STORE_RETURN_IF_ERROR(Claim(registry, instance));
    return local;
  }
  if (options.postgres.empty() && options.registry == nullptr) {
    return absl::InvalidArgumentError(
        "artifacts in a shared place need a registry that is shared as well, in PostgreSQL");
  }
  if (options.budget_bytes == 0 && options.objects == nullptr) {
    return absl::InvalidArgumentError(
        "without a limit copies of shared artifacts would fill the disk: set a disk budget");
  }
  // Not the name of this data folder: the place outlives it.
  std::string fresh(kInstanceBytes, '\0');
  RandomOf(options)(std::as_writable_bytes(std::span<char>(fresh)));
  STORE_ASSIGN_OR_RETURN(std::string identity,
                         ClaimShared(registry, *objects, instance, absl::BytesToHexString(fresh)));
  return SharedArtifactFiles::Open(std::move(local), std::move(objects), std::move(identity));
}

absl::Status FailInterrupted(Sql& sql, DocumentRow row, const char* why, absl::Time now) {
  row.state = DocumentState::kFailed;
  row.state_reason = why;
  row.builder.clear();
  row.updated = now;
  ++row.revision;
  return UpdateDocumentRow(sql, row);
}

absl::Status MarkQuarantined(Sql& sql, DocumentRow row, const std::string& why, absl::Time now) {
  if (!IsValidId(row.name)) row.name = absl::StrCat("damaged-", row.id);
  if (row.damaged) {
    row.spec = DocumentSpec();
    row.evaluation.clear();
    row.default_cache_id.clear();
    row.builder.clear();
  }
  STORE_RETURN_IF_ERROR(DeleteWords(sql, row.id));
  row.state = DocumentState::kQuarantined;
  row.state_reason = why;
  row.updated = now;
  ++row.revision;
  return UpdateDocumentRow(sql, row);
}

absl::Status MendDocument(Sql& sql, const DocumentRow& row, const std::string& instance,
                          absl::Time now) {
  if (row.state == DocumentState::kQuarantined && !row.damaged) return absl::OkStatus();
  if (row.damaged) return MarkQuarantined(sql, row, "its registry row is damaged", now);
  bool damaged = false;
  STORE_ASSIGN_OR_RETURN(const std::vector<CacheRow> caches, CachesOf(sql, row.id));
  for (const CacheRow& cache : caches) damaged = damaged || cache.damaged;
  STORE_ASSIGN_OR_RETURN(const std::vector<AdapterRow> adapters,
                         AdaptersOf(sql, row.id, row.last_adapter + 1, row.last_adapter + 1));
  for (const AdapterRow& adapter : adapters) damaged = damaged || adapter.damaged;
  STORE_ASSIGN_OR_RETURN(const std::vector<FileRow> files, FilesOf(sql, row.id));
  for (const FileRow& file : files) damaged = damaged || SpoilsDocument(file);
  if (damaged) {
    return MarkQuarantined(sql, row, "a registry row of its artifacts is damaged", now);
  }
  if (row.state == DocumentState::kBuilding && row.builder == instance) {
    return FailInterrupted(
        sql, row, "the daemon stopped while the document was being built; ingest it again", now);
  }
  return absl::OkStatus();
}

absl::Status MendCollections(Sql& sql, absl::Time now) {
  std::string after;
  for (;;) {
    STORE_ASSIGN_OR_RETURN(std::vector<CollectionRow> rows, ListCollectionRows(sql, after, 100));
    for (CollectionRow& row : rows) {
      after = row.name;
      if (!row.damaged) continue;
      if (!IsValidId(row.name)) row.name = absl::StrCat("damaged-", row.id);
      row.settings = CollectionSettings();
      row.settings.retain_text = false;  // its owner may have wanted that
      row.updated = now;
      ++row.revision;
      STORE_RETURN_IF_ERROR(UpdateCollectionRow(sql, row));
      STORE_RETURN_IF_ERROR(DeleteWordsOfCollection(sql, row.id));
    }
    if (rows.empty()) break;
  }
  STORE_ASSIGN_OR_RETURN(const std::optional<CollectionRow> row,
                         FindCollection(sql, kDefaultCollection));
  if (row.has_value()) return absl::OkStatus();
  CollectionRow created;
  created.name = kDefaultCollection;
  created.created = created.updated = now;
  return InsertCollection(sql, created).status();
}

// What a damaged job says can't be trusted, and its training can be started anew.
absl::StatusOr<uint64_t> DropDamagedJobs(Sql& sql, std::vector<IntentFile>& deleted) {
  std::vector<int64_t> damaged;
  STORE_RETURN_IF_ERROR(ScanTrainingJobs(sql, [&](const TrainingJobRow& row) {
    if (row.damaged) damaged.push_back(row.id);
    return absl::OkStatus();
  }));
  for (const int64_t id : damaged) {
    STORE_RETURN_IF_ERROR(DoomCheckpoint(sql, id, deleted));
    STORE_RETURN_IF_ERROR(DeleteTrainingJobRow(sql, id));
  }
  return damaged.size();
}

}  // namespace

absl::Status StoreImpl::Mend() {
  const auto mend = [&](Sql& sql, std::vector<IntentFile>& deleted) -> absl::Status {
    STORE_RETURN_IF_ERROR(MendCollections(sql, Now()));
    STORE_ASSIGN_OR_RETURN(dropped_jobs_, DropDamagedJobs(sql, deleted));
    std::vector<int64_t> ids;
    STORE_RETURN_IF_ERROR(ScanDocuments(sql, [&](const DocumentRow& row) {
      ids.push_back(row.id);
      return absl::OkStatus();
    }));
    for (const int64_t id : ids) {
      STORE_ASSIGN_OR_RETURN(const std::optional<DocumentRow> row, FindDocumentById(sql, id));
      if (row.has_value()) {
        STORE_RETURN_IF_ERROR(MendDocument(sql, *row, parts_.instance, Now()));
      }
    }
    return absl::OkStatus();
  };
  return parts_.publisher->Commit(nullptr, mend);
}

absl::Status StoreImpl::CollectGarbage() {
  STORE_RETURN_IF_ERROR(parts_.publisher->CollectGarbage());
  const absl::Time before = Now() - parts_.publish_timeout;
  std::vector<int64_t> ids;
  STORE_RETURN_IF_ERROR(registry().Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(ids, BuildsBefore(sql, before));
    return absl::OkStatus();
  }));
  for (const int64_t id : ids) {
    STORE_RETURN_IF_ERROR(registry().Write([&](Sql& sql) -> absl::Status {
      STORE_ASSIGN_OR_RETURN(const std::optional<DocumentRow> row, FindDocumentById(sql, id));
      const bool lost = row.has_value() && row->state == DocumentState::kBuilding &&
                        row->builder != parts_.instance && row->updated < before;
      if (!lost) return absl::OkStatus();
      return FailInterrupted(sql, *row,
                             "the replica that built the document is gone; ingest it again", Now());
    }));
  }
  return absl::OkStatus();
}

absl::Status StoreImpl::Prepare() {
  STORE_RETURN_IF_ERROR(CollectGarbage());
  const absl::Status spare = parts_.publisher->KeepSpare();
  return absl::IsResourceExhausted(spare) ? absl::OkStatus() : spare;
}

absl::StatusOr<std::unique_ptr<AdapterStore>> AdapterStore::Open(AdapterStoreOptions options) {
  StoreImpl::Parts parts;
  parts.files = std::move(options.files);
  if (parts.files == nullptr) {
    STORE_ASSIGN_OR_RETURN(parts.files, OpenPosixFileSystem(options.folder));
  }
  FileSystem& files = *parts.files;
  STORE_ASSIGN_OR_RETURN(parts.lock, files.Lock(kLockFile));
  STORE_ASSIGN_OR_RETURN(parts.instance, InstanceOf(files, RandomOf(options)));
  parts.registry = options.registry;
  if (parts.registry == nullptr) {
    STORE_ASSIGN_OR_RETURN(parts.registry, OpenRegistry(options, files));
  }
  STORE_ASSIGN_OR_RETURN(parts.artifacts,
                         OpenArtifacts(options, files, *parts.registry, parts.instance));
  STORE_ASSIGN_OR_RETURN(parts.generation, NextGeneration(*parts.registry, parts.instance));
  parts.clock = options.clock;
  parts.publish_timeout = options.publish_timeout;
  parts.publisher =
      std::make_unique<Publisher>(PublisherOptions{.files = &files,
                                                   .artifacts = parts.artifacts.get(),
                                                   .registry = parts.registry.get(),
                                                   .instance = parts.instance,
                                                   .generation = parts.generation,
                                                   .publish_timeout = options.publish_timeout,
                                                   .orphan_age = options.orphan_age,
                                                   .clock = options.clock});
  auto store = std::make_unique<StoreImpl>(std::move(parts));
  STORE_RETURN_IF_ERROR(store->Mend());
  STORE_RETURN_IF_ERROR(store->Prepare());
  STORE_RETURN_IF_ERROR(store->CompleteIndexes());
  return store;
}

}  // namespace docmem::store
