// Long runs of mixed changes under faults and kills. Whatever went wrong: every document is whole,
// absent, or known to be damaged, no file is left without a row, and the disk counter is the sum of
// the lengths of all files below artifacts/ and temporary/, which is what `du --apparent-size`
// counts there besides the folders themselves.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <random>
#include <thread>

#include "absl/strings/str_format.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/testing/faulty_store.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterOf;
using store_test::ArtifactBytes;
using store_test::CacheOf;
using store_test::CheckWhole;
using store_test::FaultyStore;
using store_test::FileOf;
using store_test::Hash;
using store_test::Import;
using store_test::Ingest;
using store_test::Key;
using store_test::Long;
using store_test::LookAtAll;
using store_test::NameOf;
using store_test::ReadAll;
using store_test::Seen;
using store_test::SpecOf;
using store_test::TemporaryFolder;

using Random = std::minstd_rand;

void ChangeAdapters(AdapterStore& store, const DocumentKey& key, Random& random) {
  const int64_t number = static_cast<int64_t>(random() % 3) + 1;
  switch (random() % 3) {
    case 0:
    case 1:
      store.PublishAdapter(AdapterOf(key, number, std::string(random() % 5000, 'w')))
          .status()
          .IgnoreError();
      break;
    case 2:
      store.SetCurrentAdapter(key, 0, 0).status().IgnoreError();
      store.DeleteAdapter(key, static_cast<uint32_t>(number)).status().IgnoreError();
      break;
  }
}

// Trains a document: a new job, a checkpoint of one that there is, or its end.
void ChangeJobs(AdapterStore& store, const DocumentKey& key, Random& random) {
  const auto jobs = store.ListTrainingJobs(key.collection, key.id, {.size = 3});
  if (!jobs.ok()) return;
  const size_t choice = random() % 4;
  if (jobs->items.empty() || choice == 0) {
    store.AddTrainingJob(key, "request", "report").status().IgnoreError();
    return;
  }
  const int64_t job = jobs->items[random() % jobs->items.size()].id;
  if (choice == 1) {
    store.UpdateTrainingJob(job, {.state = TrainingJobState::kCancelled}).status().IgnoreError();
    return;
  }
  store.PublishTrainingCheckpoint(job, FileOf("state", std::string(random() % 9000, 's')), "report")
      .IgnoreError();
}

// One random change out of all kinds; failures are part of the game.
void RandomChange(AdapterStore& store, Random& random) {
  const DocumentKey key = Key(absl::StrFormat("d%d", random() % 8));
  const std::string text = absl::StrFormat("text %d", random() % 3);
  const int64_t number = static_cast<int64_t>(random() % 3) + 1;
  const auto document = store.GetDocument(key);
  const uint64_t revision = document.ok() && random() % 2 == 0 ? document->revision : 0;
  switch (random() % 12) {
    case 0:
    case 1:
    case 2:
      Ingest(store, key, text, number, revision).status().IgnoreError();
      break;
    case 3:
    case 4:
      Import(store, key, text, revision).IgnoreError();
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
    case 8:
      ChangeAdapters(store, key, random);
      break;
    case 9:
      store.DeleteDocument(key, 0).IgnoreError();
      break;
    case 10:
    case 11:
      ChangeJobs(store, key, random);
      break;
  }
}

// Reads a document's caches, or finds one of them damaged.
void ReadOrQuarantine(AdapterStore& store, Random& random) {
  const auto document = store.GetDocument(Key(absl::StrFormat("d%d", random() % 8)));
  if (!document.ok()) return;
  const bool quarantine = random() % 4 == 0;
  for (const Cache& cache : document->caches) {
    if (quarantine) {
      store.Quarantine(cache.file, "a tensor has another shape").IgnoreError();
    } else {
      ReadAll(store, cache.file).status().IgnoreError();
    }
  }
}

constexpr Fault kFaults[] = {Fault::kError,   Fault::kNoSpace, Fault::kShortWrite,
                             Fault::kBitFlip, Fault::kCrash,   Fault::kTornWrite};

class MixedOperationsTest : public ::testing::Test {
 protected:
  MixedOperationsTest() {
    FaultyStore first(folder_.path());
    EXPECT_OK(Ingest(*first.store, Key("other"), "other text", 1));
  }

  // A start, changes until the process dies or has had enough, and possibly a loss of power.
  void Run() {
    FaultyStore faulty(folder_.path());
    bool alive = true;
    for (int left = 10 + static_cast<int>(random_() % 90); left > 0 && alive; --left) {
      const size_t kind = random_() % std::size(kFaults);
      faulty.FailAt(random_() % 3 == 0 ? 1 + random_() % 16 : 0, kFaults[kind]);
      if (random_() % 8 == 0) {
        ReadOrQuarantine(*faulty.store, random_);
      } else {
        RandomChange(*faulty.store, random_);
      }
      ++operations_;
      if (faulty.files->triggered()) Count(kFaults[kind], faulty.files->triggered_at());
      alive = !faulty.crashes || !faulty.files->triggered();
      if (!alive) break;
      ASSERT_EQ(faulty.store->Stats()->used_bytes, ArtifactBytes(folder_.path()));
      ASSERT_EQ(faulty.store->Stats()->reserved_bytes, 0u);
    }
    faulty.store.reset();
    if (random_() % 2 == 0) ASSERT_OK(faulty.files->LosePower());
  }

  // A start that fails somewhere, or not.
  void StartBadly() {
    const size_t kind = random_() % std::size(kFaults);
    if (kFaults[kind] == Fault::kBitFlip) return;
    FaultyStore faulty(folder_.path(), 1 + random_() % 300, kFaults[kind]);
    ++bad_starts_;
    faulty.store.reset();
    if (random_() % 2 == 0) ASSERT_OK(faulty.files->LosePower());
  }

  void Look() {
    FaultyStore next(folder_.path());
    const Seen seen = LookAtAll(*next.store, folder_.path());
    ASSERT_EQ(seen.bytes, ArtifactBytes(folder_.path())) << "a file without a row is left";
    EXPECT_EQ(next.store->Stats()->quarantined_documents, 0u);
    EXPECT_OK(ReadAll(*next.store, next.store->GetDocument(Key("other"))->caches[0].file));
    documents_ += seen.documents;
    damaged_ += seen.damaged_files;
  }

  void Count(Fault fault, const std::string& call) {
    ++faults_[fault];
    // The call failed and the process lived on.
    const bool failed =
        fault == Fault::kError || fault == Fault::kNoSpace || fault == Fault::kShortWrite;
    if (failed) ++failed_calls_[call];
  }

  TemporaryFolder folder_;
  Random random_{7};
  int operations_ = 0;
  int bad_starts_ = 0;
  std::map<Fault, int> faults_;
  std::map<std::string, int> failed_calls_;
  uint64_t documents_ = 0;
  uint64_t damaged_ = 0;
};

TEST_F(MixedOperationsTest, DiskCounterEqualsTheDiskAndEveryDocumentIsWholeUnderFaults) {
  const int operations = Long() ? 10000 : 1200;
  int looks = 0;
  while (operations_ < operations && !HasFailure()) {
    Run();
    if (random_() % 2 == 0) StartBadly();
    Look();
    ++looks;
  }
  std::printf("%d operations, %d starts under a fault, %d looks:", operations_, bad_starts_, looks);
  for (const Fault fault : kFaults) {
    std::printf(" %d %s,", faults_[fault], NameOf(fault));
    EXPECT_GT(faults_[fault], 0) << NameOf(fault);
  }
  std::printf(" failed calls:");
  for (const auto& [call, count] : failed_calls_) std::printf(" %d %s,", count, call.c_str());
  for (const char* call : {"Sync", "SyncFolder", "Rename"})
    EXPECT_GT(failed_calls_[call], 0) << call;
  std::printf(" %.1f documents and %.1f damaged files at a look\n",
              static_cast<double>(documents_) / looks, static_cast<double>(damaged_) / looks);
  EXPECT_GT(documents_, static_cast<uint64_t>(looks));
}

[[noreturn]] void ChangeUntilKilled(const std::string& folder, unsigned seed) {
  AdapterStoreOptions options;
  options.folder = folder;
  auto store = AdapterStore::Open(std::move(options));
  if (!store.ok()) _exit(1);
  Random random(seed);
  for (;;) RandomChange(**store, random);
}

TEST(KillTest, OnlyWholeVersionsAreLeft) {
  const int kills = Long() ? 200 : 25;
  TemporaryFolder folder;
  {
    FaultyStore first(folder.path());
    ASSERT_OK(Ingest(*first.store, Key("other"), "other text", 1));
  }
  Random random(11);
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
    EXPECT_EQ(CheckWhole(*next.store, folder.path()), 0u) << "kill " << kill_number;
  }
}

}  // namespace
}  // namespace docmem::store
