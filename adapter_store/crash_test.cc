// What is left after a fault or the end of the process at any call: the change happened or not,
// every file that a row names is whole or known to be damaged, and no file is left without a row.

#include <algorithm>
#include <cstdio>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/testing/faulty_store.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterOf;
using store_test::CacheOf;
using store_test::CheckWhole;
using store_test::Disk;
using store_test::FaultyRegistry;
using store_test::FaultyStore;
using store_test::FileOf;
using store_test::Hash;
using store_test::Import;
using store_test::Ingest;
using store_test::Key;
using store_test::Long;
using store_test::NameOf;
using store_test::SpecOf;
using store_test::StageImport;
using store_test::TemporaryFolder;

constexpr uint64_t kNoCall = 0;
constexpr int64_t kJob = 1;

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
  ASSERT_OK(store.AddTrainingJob(Key("a"), "request", "step 0"));
  ASSERT_OK(store.PublishTrainingCheckpoint(kJob, FileOf("state", "1"), "step 1"));
}

// Report and checkpoint are of the same step.
bool IsAtStep(AdapterStore& store, uint64_t step) {
  const auto job = store.GetTrainingJob(kJob);
  if (!job.ok() || job->report != absl::StrFormat("step %d", step)) return false;
  EXPECT_TRUE(job->checkpoint.has_value() && job->checkpoint->bytes == step);
  return true;
}

// All of the imported document, or nothing of it.
bool IsImported(AdapterStore& store, const DocumentKey& key) {
  const auto document = store.GetDocument(key);
  if (!document.ok() || document->spec.text_sha256 != SpecOf("imported").text_sha256) return false;
  EXPECT_EQ(document->state, DocumentState::kReady);
  EXPECT_TRUE(document->text.has_value());
  EXPECT_EQ(document->caches.size(), 2u);
  EXPECT_EQ(document->adapter_count, 2u);
  EXPECT_EQ(document->current_adapter_version, 2u);
  return true;
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
    {"Import", [](AdapterStore& store) { return Import(store, Key("new"), "imported"); },
     [](AdapterStore& store) { return IsImported(store, Key("new")); }},
    {"ImportReplacing",
     [](AdapterStore& store) {
       const auto old = store.GetDocument(Key("a"));
       return old.ok() ? Import(store, Key("a"), "imported", old->revision) : old.status();
     },
     [](AdapterStore& store) { return IsImported(store, Key("a")); }},
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
    {"PublishCheckpoint",
     [](AdapterStore& store) {
       return store.PublishTrainingCheckpoint(kJob, FileOf("state", "22"), "step 2");
     },
     [](AdapterStore& store) {
       const bool happened = IsAtStep(store, 2);
       EXPECT_TRUE(happened || IsAtStep(store, 1));
       return happened;
     }},
    {"EndJob",
     [](AdapterStore& store) {
       return store
           .UpdateTrainingJob(kJob, {.state = TrainingJobState::kSucceeded, .report = "done"})
           .status();
     },
     [](AdapterStore& store) {
       const auto job = store.GetTrainingJob(kJob);
       const bool happened = job->state == TrainingJobState::kSucceeded;
       EXPECT_TRUE(happened ? job->report == "done" : IsAtStep(store, 1));
       return happened;
     }},
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

class CrashTest : public ::testing::TestWithParam<Operation> {
 protected:
  // What was tried, by name, over all operations.
  static void TearDownTestSuite() {
    for (const auto& [what, count] : trials) std::printf("%d %s, ", count, what.c_str());
    std::printf("no promise broken\n");
  }

  // Calls of the file system, and transactions that write.
  struct Work {
    uint64_t calls = 0;
    int transactions = 0;
  };
  static Work WorkOf(const Operation& operation) {
    TemporaryFolder folder;
    FaultyStore faulty(folder.path());
    Prepare(*faulty.store);
    const Work before = {faulty.files->calls(), faulty.registry->writes()};
    EXPECT_OK(operation.run(*faulty.store));
    EXPECT_TRUE(operation.happened(*faulty.store));
    return {faulty.files->calls() - before.calls, faulty.registry->writes() - before.transactions};
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
      faulty.FailAt(call, fault);
      status = operation.run(*faulty.store);
      EXPECT_EQ(faulty.files->triggered(), call != kNoCall);
      faulty.store.reset();
      if (power_loss) ASSERT_OK(faulty.files->LosePower());
    }
    FaultyStore next(folder.path());
    const bool lies = fault == Fault::kBitFlip || (fault == Fault::kLostSync && power_loss);
    const Disk disk = lies ? Disk::kLies : Disk::kHonest;
    const uint64_t damaged = CheckWhole(*next.store, folder.path(), disk);
    EXPECT_TRUE(!status.ok() || operation.happened(*next.store)) << "a promise was broken";
    EXPECT_LE(damaged, lies ? 3u : 0u) << "only what was written in that moment";
    EXPECT_OK(Ingest(*next.store, Key("afterwards"), "text", 1));
    if (fault != Fault::kCrash) return;
    // What that start has put in order stays so.
    next.store.reset();
    ASSERT_OK(next.files->LosePower());
    FaultyStore last(folder.path());
    EXPECT_EQ(CheckWhole(*last.store, folder.path()), 0u);
    EXPECT_TRUE(!status.ok() || operation.happened(*last.store));
  }

  static inline std::map<std::string, int> trials;
};

struct Trial {
  Fault fault;
  bool power_loss;
  bool only_long = false;
};
constexpr Trial kTrials[] = {
    {Fault::kError, false},           {Fault::kShortWrite, false},
    {Fault::kBitFlip, false},         {Fault::kLostSync, true},
    {Fault::kCrash, false},           {Fault::kCrash, true},
    {Fault::kTornWrite, true},        {Fault::kError, true, true},
    {Fault::kShortWrite, true, true}, {Fault::kNoSpace, false, true},
    {Fault::kNoSpace, true, true},    {Fault::kBitFlip, true, true},
    {Fault::kLostSync, false, true},  {Fault::kTornWrite, false, true},
};

// Where an operation makes many calls, each fault has a part of them on every day and all of them
// in the long run; together the faults of every day have all.
TEST_P(CrashTest, EveryFaultAtEveryCallLeavesAConsistentStore) {
  const uint64_t calls = WorkOf(GetParam()).calls;
  ASSERT_GT(calls, 0u);
  RunWith(kNoCall, Fault::kError, true);
  const uint64_t step = Long() ? 1 : std::min<uint64_t>(7, 1 + calls / 12);
  uint64_t first = 0;
  for (const Trial& trial : kTrials) {
    if (trial.only_long && !Long()) continue;
    for (uint64_t call = 1 + first++ % step; call <= calls; call += step) {
      RunWith(call, trial.fault, trial.power_loss);
      ++trials[absl::StrCat(NameOf(trial.fault), trial.power_loss ? " with a loss of power" : "")];
    }
  }
}

TEST_P(CrashTest, EveryFailedTransactionLeavesAConsistentStore) {
  const Operation& operation = GetParam();
  using RegistryFault = FaultyRegistry::Fault;
  const int transactions = WorkOf(operation).transactions;
  ASSERT_GT(transactions, 0);
  for (int transaction = 1; transaction <= transactions; ++transaction) {
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
        ++trials["failed transactions"];
      }
      FaultyStore next(folder.path());
      EXPECT_EQ(CheckWhole(*next.store, folder.path()), 0u);
      EXPECT_TRUE(!status.ok() || operation.happened(*next.store));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CrashTest, ::testing::ValuesIn(kOperations),
                         [](const auto& operation) { return operation.param.name; });

TEST(StagedImportTest, ProcessThatEndsBeforeItPublishesLeavesNothing) {
  for (const bool power_loss : {false, true}) {
    TemporaryFolder folder;
    {
      FaultyStore faulty(folder.path());
      Prepare(*faulty.store);
      auto import = faulty.store->BeginImport(Key("new"), 0);
      ASSERT_OK(import);
      ASSERT_OK(StageImport(**import, "imported"));
      faulty.FailAt(1, Fault::kCrash);
      import->reset();
      faulty.store.reset();
      if (power_loss) ASSERT_OK(faulty.files->LosePower());
    }
    FaultyStore next(folder.path());
    EXPECT_EQ(CheckWhole(*next.store, folder.path()), 0u);
  }
}

}  // namespace
}  // namespace docmem::store
