#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_format.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/errors.h"
#include "adapter_store/testing/faulty_store.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::CheckWhole;
using store_test::FaultyStore;
using store_test::Ingest;
using store_test::Key;
using store_test::TemporaryFolder;

constexpr int kNotAllowed = 77;
constexpr int kDocuments = 20;

// Leaves not a single free block.
void FillDisk(const std::string& folder) {
  std::ofstream ballast(folder + "/ballast", std::ios::binary);
  const std::string block(4096, 'x');
  while (ballast.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

// Mounts that nobody else sees; without privileges, in a user name space with ourselves as root.
bool UnshareMounts() {
  const uid_t user = getuid();
  const gid_t group = getgid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// In a process of its own: on a real file system of 16 MiB that only it sees.
int FillAndDelete(const std::string& folder) {
  if (!UnshareMounts() || mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=16m") != 0) {
    return kNotAllowed;
  }
  AdapterStoreOptions options;
  options.folder = folder;
  const auto store = AdapterStore::Open(std::move(options));
  if (!store.ok()) return 1;
  for (int i = 0; i < kDocuments; ++i) {
    if (!Ingest(**store, Key(absl::StrFormat("d%d", i)), std::string(1000, 'x'), 1).ok()) return 2;
  }
  FillDisk(folder);
  const absl::Status refused = Ingest(**store, Key("one-more"), "text", 1).status();
  if (!absl::IsResourceExhausted(refused) || ReasonOf(refused) != reason::kDiskFull) return 3;
  for (int i = 0; i < kDocuments; ++i) {
    if (!(*store)->DeleteDocument(Key(absl::StrFormat("d%d", i)), 0).ok()) return 4;
  }
  return (*store)->Stats()->cache.items == 0 ? 0 : 5;
}

TEST(FullDiskTest, DeletionWorksWhenNothingElseDoes) {
  TemporaryFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(FillAndDelete(folder.path()));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "can't mount a file system here";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the step that failed";
}

TEST(SpareFileTest, DeletionUsesIt) {
  TemporaryFolder folder;
  FaultyStore faulty(folder.path());
  for (const char* id : {"other", "a"}) ASSERT_OK(Ingest(*faulty.store, Key(id), "text", 1));
  const std::string spare = folder.path() + "/spare";
  bool full = true;
  faulty.registry->SetFull([&] { return full && access(spare.c_str(), F_OK) == 0; });
  EXPECT_TRUE(absl::IsResourceExhausted(Ingest(*faulty.store, Key("new"), "new", 1).status()));
  EXPECT_OK(faulty.store->DeleteDocument(Key("a"), 0));
  full = false;
  EXPECT_EQ(access(spare.c_str(), F_OK), 0) << "kept again for the next time";
  EXPECT_TRUE(absl::IsNotFound(faulty.store->GetDocument(Key("a")).status()));
  ASSERT_OK(faulty.store->CollectGarbage());
  EXPECT_EQ(CheckWhole(*faulty.store, folder.path()), 0u);
}

}  // namespace
}  // namespace docmem::store
