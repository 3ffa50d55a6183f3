#pragma once

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "adapter_store/adapter_store.h"
#include "adapter_store/document_import.h"
#include "adapter_store/files/fault_injection_file_system.h"
#include "adapter_store/testing/faulty_registry.h"
#include "adapter_store/testing/store_test_util.h"
#include "gtest/gtest.h"

namespace docmem::store::store_test {

/// Set by `./dev test --long`.
inline bool Long() { return std::getenv("DOCMEM_LONG") != nullptr; }

/// In the plural, to count them.
inline const char* NameOf(Fault fault) {
  switch (fault) {
    case Fault::kError:
      return "errors";
    case Fault::kNoSpace:
      return "full disks";
    case Fault::kShortWrite:
      return "short writes";
    case Fault::kLostSync:
      return "lost syncs";
    case Fault::kBitFlip:
      return "bit flips";
    case Fault::kCrash:
      return "crashes";
    case Fault::kTornWrite:
      return "torn writes";
  }
  return "faults";
}

/// A store whose files and registry can be made to fail.
struct FaultyStore {
  /// `call` of the start goes wrong (0: none); then `store` may be null.
  explicit FaultyStore(const std::string& folder, uint64_t call = 0, Fault fault = Fault::kError)
      : crashes(fault == Fault::kCrash || fault == Fault::kTornWrite) {
    files = FaultInjectionFileSystem::Over(*OpenPosixFileSystem(folder));
    const auto dead = [this] { return crashes && files->triggered(); };
    registry = std::make_shared<FaultyRegistry>(*OpenSqliteRegistry(folder + "/registry.db"), dead);
    files->FailAt(call, fault);
    AdapterStoreOptions options;
    options.folder = folder;
    options.files = files;
    options.registry = registry;
    auto opened = AdapterStore::Open(std::move(options));
    EXPECT_TRUE(opened.ok() || call != 0) << opened.status();
    if (opened.ok()) store = *std::move(opened);
  }

  void FailAt(uint64_t call, Fault fault) {
    crashes = fault == Fault::kCrash || fault == Fault::kTornWrite;
    files->FailAt(call, fault);
  }

  bool crashes = false;
  std::shared_ptr<FaultInjectionFileSystem> files;
  std::shared_ptr<FaultyRegistry> registry;
  std::unique_ptr<AdapterStore> store;
};

/// Text, two adapters, and two caches, of which the second was written by the second adapter.
inline absl::Status StageImport(DocumentImport& import, const std::string& text) {
  absl::Status status = import.AddText(text);
  for (const int64_t hash : {1, 2}) {
    if (!status.ok()) return status;
    const AdapterPublication made = AdapterOf(Key("x"), hash, text);
    status = import.AddAdapter(
        {static_cast<uint32_t>(hash), AdapterState::kReady, made.spec, made.files, made.packed});
  }
  for (const int64_t id : {1, 2}) {
    if (!status.ok()) return status;
    NewCache cache = CacheOf(id, "cache of " + text);
    if (id == 2) cache.spec.writer_adapter_hash = Hash(2);
    status = import.AddCache(cache);
  }
  return status;
}

inline ImportedDocument ImportOf(const std::string& text) { return {SpecOf(text), 90, Hash(2), 2}; }

inline absl::Status Import(AdapterStore& store, const DocumentKey& key, const std::string& text,
                           uint64_t replaces = 0) {
  auto import = store.BeginImport(key, replaces);
  if (!import.ok()) return import.status();
  if (absl::Status status = StageImport(**import, text); !status.ok()) return status;
  return (*import)->Publish(ImportOf(text)).status();
}

/// What `CheckWhole` has seen.
struct Seen {
  uint64_t documents = 0;
  uint64_t files = 0;
  uint64_t damaged_files = 0;
  uint64_t bytes = 0;  ///< of all files that have a row
};

/// Looks at everything that a store holds. Each document is ready, failed with a reason or
/// quarantined with a reason; each file of a ready one is whole, or damaged and told so; what rows
/// refer to is there; nothing is left reserved; the disk counter equals the lengths of all files
/// on disk.
inline Seen LookAtAll(AdapterStore& store, const std::string& folder) {
  Seen seen;
  const auto check = [&](const StoredFile& file) {
    ++seen.files;
    seen.bytes += file.bytes;
    const absl::Status status = ReadAll(store, file).status();
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    if (status.ok()) return;
    ++seen.damaged_files;
    EXPECT_FALSE(status.message().empty());
  };
  const auto collections = store.ListCollections({.size = 1000});
  EXPECT_OK(collections);
  for (const Collection& collection : collections->items) {
    const auto documents = store.ListDocuments(collection.name, {}, {.size = 1000});
    EXPECT_OK(documents);
    for (const Document& document : documents->items) {
      ++seen.documents;
      EXPECT_NE(document.state, DocumentState::kBuilding);
      EXPECT_TRUE(document.state == DocumentState::kReady || !document.state_reason.empty());
      std::set<std::string> ids;
      for (const Cache& cache : document.caches) {
        check(cache.file);
        ids.insert(cache.spec.id);
      }
      EXPECT_EQ(document.default_cache_id.empty() ? 0u : 1u, ids.count(document.default_cache_id));
      EXPECT_TRUE(document.state == DocumentState::kReady || ids.empty());
      if (document.text.has_value()) check(*document.text);
      const auto adapters = store.ListAdapters(document.key, {.size = 1000});
      EXPECT_OK(adapters);
      for (const Adapter& adapter : adapters->items) {
        EXPECT_EQ(adapter.files.size(), 2u);
        for (const StoredFile& file : adapter.files) check(file);
        check(adapter.packed);
      }
    }
    const auto jobs = store.ListTrainingJobs(collection.name, "", {.size = 1000});
    EXPECT_OK(jobs);
    for (const TrainingJob& job : jobs->items) {
      EXPECT_OK(store.GetDocument(job.document));
      EXPECT_FALSE(HasEnded(job.state) && job.checkpoint.has_value());
      if (job.checkpoint.has_value()) check(*job.checkpoint);
    }
  }
  EXPECT_EQ(store.Stats()->quarantined_files, seen.damaged_files);
  EXPECT_EQ(store.Stats()->reserved_bytes, 0u);
  EXPECT_EQ(store.Stats()->used_bytes, ArtifactBytes(folder));
  return seen;
}

/// What the disk may do to the store that is looked at.
enum class Disk { kHonest, kLies };

/// `LookAtAll` of a store with a document `other` that nobody has touched, on a disk that holds no
/// file without a row. Counts damaged files.
inline uint64_t CheckWhole(AdapterStore& store, const std::string& folder,
                           Disk disk = Disk::kHonest) {
  const Seen seen = LookAtAll(store, folder);
  EXPECT_EQ(store.Stats()->quarantined_documents, 0u);
  EXPECT_TRUE(ArtifactBytes(folder) == seen.bytes || disk == Disk::kLies)
      << "a file without a row is left";
  EXPECT_OK(ReadAll(store, store.GetDocument(Key("other"))->caches[0].file));
  return seen.damaged_files;
}

}  // namespace docmem::store::store_test
