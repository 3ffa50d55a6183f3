// A fault at every call that the database makes on its files while documents are published,
// imported and deleted, and a flipped bit at any place of them. Each time the next start finds what
// was there before the change or what the change made of it.

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_format.h"
#include "adapter_store/testing/database_sweep.h"
#include "adapter_store/testing/faulty_store.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::CheckWhole;
using store_test::DatabaseOf;
using store_test::Disk;
using store_test::FaultySqlite;
using store_test::FaultyStore;
using store_test::Import;
using store_test::Ingest;
using store_test::Key;
using store_test::Long;
using store_test::NamesTheFile;
using store_test::OpenStore;
using store_test::ReadAll;
using store_test::SaidOk;
using store_test::SpecOf;
using store_test::SqliteFault;
using store_test::Steps;
using store_test::Sweep;
using store_test::TemporaryFolder;
using store_test::Trial;

// What is there before, and "other".
void Fill(const TemporaryFolder& folder) {
  const auto store = OpenStore(folder);
  ASSERT_OK(store);
  for (const char* id : {"other", "a", "gone"}) {
    ASSERT_OK(Ingest(**store, Key(id), std::string("text of ") + id, 1));
  }
}

// Publication, import, replacement and deletion, one after the other.
Steps ChangeAll(const TemporaryFolder& folder) {
  const auto opened = OpenStore(folder);
  Steps steps = {{"start", opened.status()}};
  if (!opened.ok()) return steps;
  AdapterStore& store = **opened;
  steps["new"] = Ingest(store, Key("new"), "new", 1).status();
  steps["imported"] = Import(store, Key("imported"), "imported");
  const auto old = store.GetDocument(Key("a"));
  steps["replaced"] = old.ok() ? Import(store, Key("a"), "replaced", old->revision) : old.status();
  steps["gone"] = store.DeleteDocument(Key("gone"), 0);
  return steps;
}

// After a flipped bit: every document is there as it was written, or known to be damaged.
void CheckDocuments(AdapterStore& store) {
  const auto documents = store.ListDocuments("default", {}, {.size = 100});
  ASSERT_OK(documents);
  const auto check_read = [](const absl::Status& status) {
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
  };
  bool other = false;
  for (const Document& document : documents->items) {
    const std::string& id = document.key.id;
    other = other || id == "other" || document.state == DocumentState::kQuarantined;
    EXPECT_TRUE(document.state == DocumentState::kReady || !document.state_reason.empty());
    EXPECT_OK(store.GetDocument(document.key));
    if (document.state != DocumentState::kReady) continue;
    const auto text = store.ReadText(document.key);
    check_read(text.status());
    EXPECT_TRUE(!text.ok() || *text == "text of " + id || *text == id || *text == "replaced");
    for (const Cache& cache : document.caches) check_read(ReadAll(store, cache.file).status());
  }
  EXPECT_TRUE(other) << "a document was lost";
}

void CheckAll(const TemporaryFolder& folder, const Trial& trial, const Steps& steps) {
  if (trial.fault == SqliteFault::kBitFlip) {
    const auto store = OpenStore(folder);
    EXPECT_TRUE(store.ok() || NamesTheFile(store.status())) << store.status();
    if (store.ok()) CheckDocuments(**store);
    return;
  }
  FaultyStore next(folder.path());
  // The rows of one change at most have come back without their files.
  const uint64_t damaged =
      CheckWhole(*next.store, folder.path(), trial.lies() ? Disk::kLies : Disk::kHonest);
  EXPECT_LE(damaged, trial.lies() ? 2u : 0u);
  const auto is = [&](const char* id, const std::string& text) {
    const auto found = next.store->GetDocument(Key(id));
    return found.ok() && found->state == DocumentState::kReady &&
           found->spec.text_sha256 == SpecOf(text).text_sha256;
  };
  EXPECT_TRUE(is("a", "replaced") || is("a", "text of a"));
  if (trial.lies()) return;
  for (const char* id : {"new", "imported"}) EXPECT_TRUE(!SaidOk(steps, id) || is(id, id)) << id;
  EXPECT_TRUE(!SaidOk(steps, "replaced") || is("a", "replaced"));
  EXPECT_TRUE(!SaidOk(steps, "gone") || !next.store->GetDocument(Key("gone")).ok());
}

TEST(RegistryFaultsTest, AFaultAtAnyCallOfTheDatabaseLeavesAConsistentStore) {
  Sweep(Fill, ChangeAll, CheckAll, Long() ? 1 : 17);
}

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

void PutBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// In the header a flip can read as another version or as a format that SQLite doesn't know.
constexpr size_t kHeaderBytes = 100;

// Of a database at rest: after a clean stop, and beside the log that a killed process leaves.
TEST(RegistryFaultsTest, ABitFlippedAnywhereIsFoundOrHarmsNothing) {
  for (const bool killed : {false, true}) {
    TemporaryFolder folder;
    Fill(folder);
    const std::string database = DatabaseOf(folder);
    const std::string log = database + "-wal";
    if (killed) {
      FaultySqlite sqlite;
      sqlite.FailAt(100, SqliteFault::kCrash);
      ChangeAll(folder);
    }
    const std::map<std::string, std::string> whole = {{database, BytesOf(database)},
                                                      {log, BytesOf(log)}};
    EXPECT_EQ(whole.at(log).empty(), !killed);
    int flips = 0;
    int refused = 0;
    for (const auto& [path, bytes] : whole) {
      for (size_t at = 0; at < bytes.size(); at += at < kHeaderBytes ? 1 : (Long() ? 101 : 997)) {
        SCOPED_TRACE(absl::StrFormat("byte %d of %s", at, path));
        for (const auto& [each, content] : whole) PutBytes(each, content);
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
        PutBytes(path, damaged);
        const auto store = OpenStore(folder);
        const bool header = path == database && at < kHeaderBytes;
        EXPECT_TRUE(store.ok() || header || NamesTheFile(store.status())) << store.status();
        if (store.ok()) CheckDocuments(**store);
        refused += store.ok() ? 0 : 1;
        ++flips;
      }
    }
    EXPECT_GT(refused, 0);
    std::printf("%s: %d flips, %d starts refused\n", killed ? "killed" : "stopped", flips, refused);
  }
}

TEST(RegistryFaultsTest, AnIndexThatHidesADocumentRefusesTheStart) {
  TemporaryFolder folder;
  Fill(folder);
  const std::string whole = BytesOf(DatabaseOf(folder));
  int places = 0;  // the row, and the index that finds it
  for (size_t at = whole.find("other"); at < whole.size(); at = whole.find("other", at + 1)) {
    std::string damaged = whole;
    damaged[at] ^= 2;
    PutBytes(DatabaseOf(folder), damaged);
    const absl::Status status = OpenStore(folder).status();
    EXPECT_TRUE(NamesTheFile(status)) << status;
    ++places;
  }
  EXPECT_GE(places, 2);
}

}  // namespace
}  // namespace docmem::store
