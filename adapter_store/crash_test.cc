// What is left after a fault or the end of the process at any call: the change happened or not,
// every file that a row names is whole or known to be damaged, and no file is left without a row.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_format.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/fault_injection_file_system.h"
#include "adapter_store/testing/faulty_registry.h"
#include "adapter_store/testing/store_test_util.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterOf;
using store_test::ArtifactBytes;
using store_test::CacheOf;
using store_test::FaultyRegistry;
using store_test::Hash;
using store_test::Ingest;
using store_test::Key;
using store_test::ReadAll;
using store_test::SpecOf;
using store_test::TemporaryFolder;

constexpr uint64_t kNoCall = 0;

bool Long() { return std::getenv("DOCMEM_LONG") != nullptr; }

// What the disk may do to the store that is looked at.
enum class Disk { kHonest, kLies };

// A store whose files and registry can be made to fail.
struct FaultyStore {
  explicit FaultyStore(const std::string& folder) {
    files = FaultInjectionFileSystem::Over(*OpenPosixFileSystem(folder));
    const auto dead = [this] { return crashes && files->triggered(); };
    registry = std::make_shared<FaultyRegistry>(*OpenSqliteRegistry(folder + "/registry.db"), dead);
    AdapterStoreOptions options;
    options.folder = folder;
    options.files = files;
    options.registry = registry;
    auto opened = AdapterStore::Open(std::move(options));
    EXPECT_OK(opened);
    store = *std::move(opened);
  }

  bool crashes = false;
  std::shared_ptr<FaultInjectionFileSystem> files;
  std::shared_ptr<FaultyRegistry> registry;
  std::unique_ptr<AdapterStore> store;
};

struct Operation {
  const char* name;
  std::function<absl::Status(AdapterStore&)> run;
  // Did it happen, as the registry shows it?
  std::function<bool(AdapterStore&)> happened;
};

std::ostream& operator<<(std::ostream& out, const Operation& operation) {
  return out << operation.name;
}

void Prepare(AdapterStore& store) {
  ASSERT_OK(store.CreateCollection("books", {}));
  ASSERT_OK(Ingest(store, Key("other"), "other text", 1));
  ASSERT_OK(Ingest(store, {"books", "b"}, "book", 1));
  ASSERT_OK(Ingest(store, Key("a"), "text", 1));
  ASSERT_OK(store.PublishAdapter(AdapterOf(Key("a"), 1, "one")));
  ASSERT_OK(store.PublishAdapter(AdapterOf(Key("a"), 2, "two")));
}

const Operation kOperations[] = {
    {"IngestNew", [](AdapterStore& store) { return Ingest(store, Key("new"), "new", 1).status(); },
     [](AdapterStore& store) {
       const auto document = store.GetDocument(Key("new"));
       return document.ok() && document->state == DocumentState::kReady;
     }},
    {"Replace",
     [](AdapterStore& store) -> absl::Status {
       const auto old = store.GetDocument(Key("a"));
       if (!old.ok()) return old.status();
       return Ingest(store, Key("a"), "replaced", 2, old->revision).status();
     },
     [](AdapterStore& store) {
       return store.GetDocument(Key("a"))->spec.text_sha256 == SpecOf("replaced").text_sha256;
     }},
    {"PublishCache",
     [](AdapterStore& store) {
       return store.PublishCaches(Key("a"), SpecOf("text").text_sha256, {CacheOf(3, "three")})
           .status();
     },
     [](AdapterStore& store) { return store.GetDocument(Key("a"))->caches.size() == 2; }},
    {"PublishAdapter",
     [](AdapterStore& store) {
       return store.PublishAdapter(AdapterOf(Key("a"), 3, "three")).status();
     },
     [](AdapterStore& store) { return store.GetAdapter(Key("a"), 3).ok(); }},
    {"DropText",
     [](AdapterStore& store) {
       DocumentEdit edit;
       edit.drop_text = true;
       return store.UpdateDocument(Key("a"), 0, edit).status();
     },
     [](AdapterStore& store) { return !store.GetDocument(Key("a"))->text.has_value(); }},
    {"DeleteCache", [](AdapterStore& store) { return store.DeleteCache(Key("a"), Hash(1)); },
     [](AdapterStore& store) { return store.GetDocument(Key("a"))->caches.empty(); }},
    {"DeleteAdapter", [](AdapterStore& store) { return store.DeleteAdapter(Key("a"), 1).status(); },
     [](AdapterStore& store) { return !store.GetAdapter(Key("a"), 1).ok(); }},
    {"DeleteDocument", [](AdapterStore& store) { return store.DeleteDocument(Key("a"), 0); },
     [](AdapterStore& store) { return !store.GetDocument(Key("a")).ok(); }},
    {"DeleteCollection",
     [](AdapterStore& store) { return store.DeleteCollection("books", true).status(); },
     [](AdapterStore& store) { return !store.GetCollection("books").ok(); }},
};

// Counts damaged files; anything else that isn't right fails the test.
int CheckWhole(AdapterStore& store, const std::string& folder, Disk disk = Disk::kHonest) {
  int damaged = 0;
  uint64_t bytes = 0;
  const auto check = [&](const StoredFile& file) {
    bytes += file.bytes;
    const absl::Status status = ReadAll(store, file).status();
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    if (!status.ok()) ++damaged;
  };
  const auto collections = store.ListCollections({});
  EXPECT_OK(collections);
  for (const Collection& collection : collections->items) {
    const auto documents = store.ListDocuments(collection.name, {}, {});
    EXPECT_OK(documents);
    for (const Document& document : documents->items) {
      EXPECT_NE(document.state, DocumentState::kBuilding);
      EXPECT_NE(document.state, DocumentState::kQuarantined) << document.state_reason;
      std::set<std::string> ids;
      for (const Cache& cache : document.caches) {
        check(cache.file);
        ids.insert(cache.spec.id);
      }
      EXPECT_EQ(document.default_cache_id.empty() ? 0u : 1u, ids.count(document.default_cache_id));
      EXPECT_TRUE(document.state == DocumentState::kReady || ids.empty());
      if (document.text.has_value()) check(*document.text);
      const auto adapters = store.ListAdapters(document.key, {});
      EXPECT_OK(adapters);
      for (const Adapter& adapter : adapters->items) {
        EXPECT_EQ(adapter.files.size(), 2u);
        for (const StoredFile& file : adapter.files) check(file);
        check(adapter.packed);
      }
    }
  }
  const uint64_t on_disk = ArtifactBytes(folder);
  EXPECT_TRUE(on_disk == bytes || disk == Disk::kLies) << "a file without a row is left";
  EXPECT_EQ(store.Stats()->used_bytes, on_disk);
  EXPECT_OK(ReadAll(store, store.GetDocument(Key("other"))->caches[0].file));
  return damaged;
}

class CrashTest : public ::testing::TestWithParam<Operation> {
 protected:
  uint64_t CallsOf(const Operation& operation) {
    TemporaryFolder folder;
    FaultyStore faulty(folder.path());
    Prepare(*faulty.store);
    const uint64_t before = faulty.files->calls();
    EXPECT_OK(operation.run(*faulty.store));
    EXPECT_TRUE(operation.happened(*faulty.store));
    return faulty.files->calls() - before;
  }

  // Runs the operation with one fault, ends the process, and looks at what the next one finds.
  void RunWith(uint64_t call, Fault fault, bool power_loss) {
    const Operation& operation = GetParam();
    SCOPED_TRACE(absl::StrFormat("%s call %d fault %d power loss %d", operation.name, call,
                                 static_cast<int>(fault), power_loss));
    TemporaryFolder folder;
    absl::Status status;
    {
      FaultyStore faulty(folder.path());
      Prepare(*faulty.store);
      faulty.crashes = fault == Fault::kCrash;
      faulty.files->FailAt(call, fault);
      status = operation.run(*faulty.store);
      EXPECT_EQ(faulty.files->triggered(), call != kNoCall);
      faulty.store.reset();
      if (power_loss) ASSERT_OK(faulty.files->LosePower());
    }
    FaultyStore next(folder.path());
    const bool lies = fault == Fault::kBitFlip || (fault == Fault::kLostSync && power_loss);
    const int damaged = CheckWhole(*next.store, folder.path(), lies ? Disk::kLies : Disk::kHonest);
    EXPECT_TRUE(!status.ok() || operation.happened(*next.store)) << "a promise was broken";
    EXPECT_LE(damaged, lies ? 3 : 0) << "only what was written in that moment";
    EXPECT_OK(Ingest(*next.store, Key("afterwards"), "text", 1));
  }
};

TEST_P(CrashTest, EveryFaultAtEveryCallLeavesAConsistentStore) {
  const uint64_t calls = CallsOf(GetParam());
  ASSERT_GT(calls, 0u);
  RunWith(kNoCall, Fault::kError, true);
  for (uint64_t call = 1; call <= calls; ++call) {
    RunWith(call, Fault::kError, false);
    RunWith(call, Fault::kShortWrite, false);
    RunWith(call, Fault::kBitFlip, false);
    RunWith(call, Fault::kLostSync, true);
    RunWith(call, Fault::kCrash, false);
    RunWith(call, Fault::kCrash, true);
    if (!Long()) continue;
    RunWith(call, Fault::kError, true);
    RunWith(call, Fault::kShortWrite, true);
    RunWith(call, Fault::kNoSpace, false);
    RunWith(call, Fault::kNoSpace, true);
    RunWith(call, Fault::kBitFlip, true);
    RunWith(call, Fault::kLostSync, false);
  }
}

TEST_P(CrashTest, EveryFailedTransactionLeavesAConsistentStore) {
  const Operation& operation = GetParam();
  using RegistryFault = FaultyRegistry::Fault;
  for (int transaction = 1; transaction <= 4; ++transaction) {
    for (const RegistryFault fault :
         {RegistryFault::kBeforeCommit, RegistryFault::kAfterCommit, RegistryFault::kFull}) {
      SCOPED_TRACE(absl::StrFormat("%s transaction %d fault %d", operation.name, transaction,
                                   static_cast<int>(fault)));
      TemporaryFolder folder;
      absl::Status status;
      {
        FaultyStore faulty(folder.path());
        Prepare(*faulty.store);
        faulty.registry->FailAt(transaction, fault);
        status = operation.run(*faulty.store);
        EXPECT_TRUE(!status.ok() || operation.happened(*faulty.store));
      }
      FaultyStore next(folder.path());
      EXPECT_EQ(CheckWhole(*next.store, folder.path()), 0);
      EXPECT_TRUE(!status.ok() || operation.happened(*next.store));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CrashTest, ::testing::ValuesIn(kOperations),
                         [](const auto& operation) { return operation.param.name; });

TEST(SpareFileTest, DeletionUsesIt) {
  TemporaryFolder folder;
  FaultyStore faulty(folder.path());
  Prepare(*faulty.store);
  const std::string spare = folder.path() + "/spare";
  bool full = true;
  faulty.registry->SetFull([&] { return full && access(spare.c_str(), F_OK) == 0; });
  EXPECT_TRUE(absl::IsResourceExhausted(Ingest(*faulty.store, Key("new"), "new", 1).status()));
  EXPECT_OK(faulty.store->DeleteDocument(Key("a"), 0));
  full = false;
  EXPECT_EQ(access(spare.c_str(), F_OK), 0) << "kept again for the next time";
  EXPECT_TRUE(absl::IsNotFound(faulty.store->GetDocument(Key("a")).status()));
  ASSERT_OK(faulty.store->CollectGarbage());
  EXPECT_EQ(CheckWhole(*faulty.store, folder.path()), 0);
}

// One random change out of all kinds; failures are part of the game.
void RandomOperation(AdapterStore& store, std::minstd_rand& random) {
  const DocumentKey key = Key(absl::StrFormat("d%d", random() % 8));
  const std::string text = absl::StrFormat("text %d", random() % 3);
  const int64_t number = static_cast<int64_t>(random() % 3) + 1;
  const auto document = store.GetDocument(key);
  const uint64_t revision = document.ok() ? document->revision : 0;
  switch (random() % 9) {
    case 0:
    case 1:
    case 2:
      Ingest(store, key, text, number).status().IgnoreError();
      break;
    case 3:
      Ingest(store, key, text, number, revision).status().IgnoreError();
      break;
    case 4:
      store.PublishAdapter(AdapterOf(key, number, std::string(random() % 5000, 'w')))
          .status()
          .IgnoreError();
      break;
    case 5:
      store
          .PublishCaches(key, SpecOf(text).text_sha256,
                         {CacheOf(number, std::string(random() % 9000, 'c'))})
          .status()
          .IgnoreError();
      break;
    case 6:
      store.DeleteCache(key, Hash(number)).IgnoreError();
      break;
    case 7:
      store.SetCurrentAdapter(key, 0, 0).status().IgnoreError();
      store.DeleteAdapter(key, static_cast<uint32_t>(number)).status().IgnoreError();
      break;
    case 8:
      store.DeleteDocument(key, 0).IgnoreError();
      break;
  }
}

TEST(MixedOperationsTest, DiskCounterEqualsTheDiskUnderFaults) {
  const int operations = Long() ? 10000 : 1500;
  TemporaryFolder folder;
  std::minstd_rand random(7);
  uint64_t faults = 0;
  {
    FaultyStore faulty(folder.path());
    ASSERT_OK(Ingest(*faulty.store, Key("other"), "other text", 1));
    for (int i = 0; i < operations; ++i) {
      constexpr Fault kFaults[] = {Fault::kError, Fault::kNoSpace, Fault::kShortWrite};
      faulty.files->FailAt(random() % 3 == 0 ? 1 + random() % 12 : 0, kFaults[random() % 3]);
      RandomOperation(*faulty.store, random);
      if (faulty.files->triggered()) ++faults;
      ASSERT_EQ(faulty.store->Stats()->used_bytes, ArtifactBytes(folder.path())) << i;
      ASSERT_EQ(faulty.store->Stats()->reserved_bytes, 0u);
    }
    faulty.files->FailAt(0, Fault::kError);
    ASSERT_OK(faulty.store->CollectGarbage());
  }
  EXPECT_GT(faults, static_cast<uint64_t>(operations) / 20);
  FaultyStore next(folder.path());
  EXPECT_EQ(CheckWhole(*next.store, folder.path()), 0);
}

[[noreturn]] void ChangeUntilKilled(const std::string& folder, unsigned seed) {
  AdapterStoreOptions options;
  options.folder = folder;
  auto store = AdapterStore::Open(std::move(options));
  if (!store.ok()) _exit(1);
  std::minstd_rand random(seed);
  for (;;) RandomOperation(**store, random);
}

TEST(KillTest, OnlyWholeVersionsAreLeft) {
  const int kills = Long() ? 200 : 25;
  TemporaryFolder folder;
  {
    FaultyStore first(folder.path());
    ASSERT_OK(Ingest(*first.store, Key("other"), "other text", 1));
  }
  std::minstd_rand random(11);
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    const unsigned seed = static_cast<unsigned>(random());
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) ChangeUntilKilled(folder.path(), seed);
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 60));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    FaultyStore next(folder.path());
    EXPECT_EQ(CheckWhole(*next.store, folder.path()), 0) << "kill " << kill_number;
  }
}

}  // namespace
}  // namespace docmem::store
