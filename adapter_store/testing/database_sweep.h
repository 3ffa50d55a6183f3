// A fault at every call that a database makes on its files.

#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/testing/faulty_sqlite.h"
#include "adapter_store/testing/store_test_util.h"
#include "gtest/gtest.h"

namespace docmem::store::store_test {

inline std::string DatabaseOf(const TemporaryFolder& folder) {
  return folder.path() + "/registry.db";
}

inline absl::StatusOr<std::unique_ptr<AdapterStore>> OpenStore(const TemporaryFolder& folder) {
  AdapterStoreOptions options;
  options.folder = folder.path();
  return AdapterStore::Open(std::move(options));
}

/// A refusal of a damaged registry, as it should be.
inline bool NamesTheFile(const absl::Status& status) {
  return absl::IsDataLoss(status) &&
         status.message().find("'registry.db'") != absl::string_view::npos;
}

struct Trial {
  const char* name;  ///< in the plural, to count them
  SqliteFault fault;
  enum { kStays, kLost, kLostInPart } power = kStays;  ///< when the database has been closed
  /// The disk says OK and it isn't true: promises may be broken, the store never.
  bool lies() const { return fault == SqliteFault::kLostSync || fault == SqliteFault::kBitFlip; }
};
constexpr Trial kTrials[] = {
    {"errors", SqliteFault::kError},
    {"full disks", SqliteFault::kFull},
    {"crashes", SqliteFault::kCrash},
    {"torn writes", SqliteFault::kTornWrite},
    {"losses of power", SqliteFault::kCrash, Trial::kLost},
    {"losses of power with half of what wasn't synced", SqliteFault::kCrash, Trial::kLostInPart},
    {"lost syncs before a loss of power", SqliteFault::kLostSync, Trial::kLost},
    {"bit flips", SqliteFault::kBitFlip},
};

/// The calls that the fault changes, numbered from 1.
inline std::vector<uint64_t> CallsFor(SqliteFault fault, const std::vector<SqliteCall>& calls) {
  std::vector<uint64_t> found;
  for (uint64_t i = 0; i < calls.size(); ++i) {
    if (fault == SqliteFault::kLostSync && calls[i] != SqliteCall::kSync) continue;
    if (fault == SqliteFault::kBitFlip && calls[i] != SqliteCall::kWrite) continue;
    found.push_back(i + 1);
  }
  return found;
}

/// The steps of a change that were made, and what each returned.
using Steps = std::map<std::string, absl::Status>;

inline bool SaidOk(const Steps& steps, const std::string& step) {
  const auto found = steps.find(step);
  return found != steps.end() && found->second.ok();
}

/// `change` once without a fault to count its calls, then with each fault at each call, each time
/// on a folder that `prepare` has made; `check` looks at what is left. With a `stride` not every
/// call is tried, and each fault has others. Prints how often each fault was tried.
inline void Sweep(
    const std::function<void(const TemporaryFolder&)>& prepare,
    const std::function<Steps(const TemporaryFolder&)>& change,
    const std::function<void(const TemporaryFolder&, const Trial&, const Steps&)>& check,
    uint64_t stride = 1) {
  std::vector<SqliteCall> calls;
  {
    TemporaryFolder folder;
    prepare(folder);
    FaultySqlite sqlite;
    for (const auto& [name, status] : change(folder)) ASSERT_OK(status);
    calls = sqlite.calls();
  }
  ASSERT_GT(calls.size(), 3u);
  std::printf("%d calls:", static_cast<int>(calls.size()));
  for (const Trial& trial : kTrials) {
    const std::vector<uint64_t> tried = CallsFor(trial.fault, calls);
    const uint64_t step = std::min<uint64_t>(stride, 1 + tried.size() / 12);
    int trials = 0;
    for (uint64_t i = static_cast<uint64_t>(&trial - kTrials) % step; i < tried.size(); i += step) {
      SCOPED_TRACE(absl::StrFormat("%s, call %d of %d", trial.name, tried[i], calls.size()));
      TemporaryFolder folder;
      prepare(folder);
      Steps steps;
      {
        FaultySqlite sqlite;
        sqlite.FailAt(tried[i], trial.fault);
        steps = change(folder);
        if (trial.power != Trial::kStays) sqlite.LosePower(trial.power == Trial::kLostInPart);
      }
      check(folder, trial, steps);
      ++trials;
    }
    EXPECT_GT(trials, 0) << trial.name;
    std::printf(" %d %s,", trials, trial.name);
  }
  std::printf("\n");
}

}  // namespace docmem::store::store_test
