#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "adapter_store/files/file_system.h"

namespace docmem::store {

/// What goes wrong at the chosen call.
enum class Fault {
  kError,       ///< the call fails and has no effect
  kNoSpace,     ///< `Append` writes half and fails with RESOURCE_EXHAUSTED; others as kError
  kShortWrite,  ///< `Append` writes half and fails; others as kError
  kLostSync,    ///< `Sync` and `SyncFolder` return OK and do nothing; others work
  kBitFlip,     ///< `Append` and `Read` flip one bit and return OK; others work
  kCrash,       ///< this call and all later ones fail without effect: the process is dead
  kTornWrite,   ///< as kCrash, but an `Append` has written half
};

/// Passes calls to another file system, counts them, and lets one of them fail. It remembers what
/// hasn't been synced, so that a loss of power can be played. For tests; thread-safe.
class FaultInjectionFileSystem : public FileSystem {
 public:
  static std::shared_ptr<FaultInjectionFileSystem> Over(std::shared_ptr<FileSystem> base);

  /// Lets the `call`-th call from now on (from 1) go wrong. 0: none.
  virtual void FailAt(uint64_t call, Fault fault) = 0;
  /// Calls so far, of the file system and of its files.
  virtual uint64_t calls() const = 0;
  /// True once the chosen call was made.
  virtual bool triggered() const = 0;
  /// Which call that was, "Sync" for instance; empty before.
  virtual std::string triggered_at() const = 0;
  /// All later calls fail as after `Fault::kCrash`.
  virtual void Crash() = 0;
  /// Takes back what no sync made durable: appended bytes, new names, renames and removals. Then
  /// works again, without faults.
  virtual absl::Status LosePower() = 0;
};

}  // namespace docmem::store
