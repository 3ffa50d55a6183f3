#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "adapter_store/registry/registry.h"

namespace docmem::store::store_test {

/// Lets one transaction that writes fail, before or after it was committed; fails all of them once
/// the process is dead. For tests.
class FaultyRegistry : public Registry {
 public:
  enum class Fault { kBeforeCommit, kAfterCommit, kFull };

  FaultyRegistry(std::unique_ptr<Registry> base, std::function<bool()> dead)
      : base_(std::move(base)), dead_(std::move(dead)) {}

  /// The `transaction`-th from now on, from 1; 0: none.
  void FailAt(int transaction, Fault fault) {
    countdown_ = transaction;
    fault_ = fault;
  }
  /// Until then all fail as on a full disk.
  void SetFull(std::function<bool()> full) { full_ = std::move(full); }
  /// Transactions that write, so far.
  int writes() const { return writes_; }

  absl::Status Write(Body body) override {
    ++writes_;
    if (dead_()) return absl::UnavailableError("injected fault: the process is dead");
    if (full_ != nullptr && full_()) return absl::ResourceExhaustedError("injected fault: full");
    const bool fails = countdown_ > 0 && --countdown_ == 0;
    if (!fails) return base_->Write(body);
    if (fault_ == Fault::kFull) return absl::ResourceExhaustedError("injected fault: full");
    const absl::Status status = base_->Write([&](Sql& sql) {
      absl::Status result = body(sql);
      if (!result.ok() || fault_ == Fault::kAfterCommit) return result;
      return absl::UnavailableError("injected fault: before commit");
    });
    return status.ok() ? absl::UnavailableError("injected fault: after commit") : status;
  }

  absl::Status Read(Body body) override {
    if (dead_()) return absl::UnavailableError("injected fault: the process is dead");
    return base_->Read(body);
  }

 private:
  const std::unique_ptr<Registry> base_;
  const std::function<bool()> dead_;
  std::function<bool()> full_;
  int countdown_ = 0;
  Fault fault_ = Fault::kBeforeCommit;
  int writes_ = 0;
};

}  // namespace docmem::store::store_test
