#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "adapter_store/testing/unsynced_files.h"

namespace docmem::store::store_test {

/// What goes wrong at the chosen call of the database's own files.
enum class SqliteFault {
  kError,      ///< the call fails and has no effect
  kFull,       ///< a write writes half and says that the disk is full; other calls as kError
  kCrash,      ///< this call and all later ones fail without effect: the process is dead
  kTornWrite,  ///< as kCrash, but a write has written half
  kLostSync,   ///< a sync does nothing and returns OK; dead from the next sync on
  kBitFlip,    ///< a write flips one bit and returns OK
};

enum class SqliteCall { kOpen, kWrite, kSync, kCut, kDelete };

/// While one lives, databases that are opened go through it: it counts the calls that change files
/// (opening, writing, syncing, cutting, deleting), lets one go wrong, and can play a loss of power.
/// One at a time, on one thread; all that was opened meanwhile must be closed before it goes.
class FaultySqlite {
 public:
  FaultySqlite() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
    vfs_.zName = "faulty";
    vfs_.pNext = nullptr;
    vfs_.pAppData = this;
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.xOpen = Open;
    vfs_.xDelete = Delete;
    vfs_.xAccess = [](sqlite3_vfs* vfs, const char* name, int flags, int* result) {
      return Of(vfs).real_->xAccess(Of(vfs).real_, name, flags, result);
    };
    vfs_.xFullPathname = [](sqlite3_vfs* vfs, const char* name, int size, char* out) {
      return Of(vfs).real_->xFullPathname(Of(vfs).real_, name, size, out);
    };
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~FaultySqlite() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(real_, 1);
  }
  FaultySqlite(const FaultySqlite&) = delete;
  FaultySqlite& operator=(const FaultySqlite&) = delete;

  /// The `call`-th from now on, from 1; 0: none.
  void FailAt(uint64_t call, SqliteFault fault) {
    fail_call_ = call == 0 ? 0 : calls_.size() + call;
    fault_ = fault;
  }
  const std::vector<SqliteCall>& calls() const { return calls_; }
  /// Takes back what no sync made durable, or every second change of it. All files must be closed.
  void LosePower(bool in_part) { disk_.LosePower(in_part); }

 private:
  // What SQLite allocates for a file; the real one follows it.
  struct File {
    sqlite3_file base;
    FaultySqlite* owner;
    UnsyncedFiles::File* disk;  // null: a temporary file
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
    const sqlite3_io_methods& methods() { return *real()->pMethods; }
  };
  static File& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
  static FaultySqlite& Of(sqlite3_vfs* vfs) { return *static_cast<FaultySqlite*>(vfs->pAppData); }

  // SQLITE_OK: the call goes on.
  int Begin(SqliteCall call) {
    calls_.push_back(call);
    const bool chosen = calls_.size() == fail_call_;
    const bool silent = fault_ == SqliteFault::kLostSync || fault_ == SqliteFault::kBitFlip;
    dead_ = dead_ || (sync_lost_ && call == SqliteCall::kSync) ||
            (chosen && (fault_ == SqliteFault::kCrash || fault_ == SqliteFault::kTornWrite));
    if (!dead_ && (!chosen || silent)) return SQLITE_OK;
    return chosen && fault_ == SqliteFault::kFull ? SQLITE_FULL : SQLITE_IOERR;
  }
  // The call that `Begin` let go on is the chosen one, and this is its fault.
  bool Is(SqliteFault fault) const { return calls_.size() == fail_call_ && fault_ == fault; }

  static int Open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags,
                  int* out_flags) {
    FaultySqlite& self = Of(vfs);
    File& made = Of(file);
    made.base.pMethods = nullptr;
    made.owner = &self;
    made.disk = nullptr;
    if (self.Begin(SqliteCall::kOpen) != SQLITE_OK) return SQLITE_CANTOPEN;
    const int lasting = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;
    if ((flags & lasting) != 0) made.disk = &self.disk_.Of(name);
    std::memset(made.real(), 0, static_cast<size_t>(self.real_->szOsFile));
    const int code = self.real_->xOpen(self.real_, name, made.real(), flags, out_flags);
    if (made.real()->pMethods != nullptr) made.base.pMethods = FileMethods();
    return code;
  }

  static int Delete(sqlite3_vfs* vfs, const char* name, int sync) {
    FaultySqlite& self = Of(vfs);
    if (self.Begin(SqliteCall::kDelete) != SQLITE_OK) return SQLITE_IOERR_DELETE;
    const int code = self.real_->xDelete(self.real_, name, sync);
    if (code == SQLITE_OK) self.disk_.Removed(name);
    return code;
  }

  static int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
    FaultySqlite& owner = *Of(file).owner;
    const bool was_dead = owner.dead_;
    const int code = owner.Begin(SqliteCall::kWrite);
    const bool half =
        !was_dead && (owner.Is(SqliteFault::kFull) || owner.Is(SqliteFault::kTornWrite));
    if (code != SQLITE_OK && !half) return SQLITE_IOERR_WRITE;
    std::string written(static_cast<const char*>(bytes),
                        static_cast<size_t>(half ? size / 2 : size));
    // Somewhere: the middle of a page is often unused.
    if (owner.Is(SqliteFault::kBitFlip)) written[owner.fail_call_ * 977 % written.size()] ^= 4;
    const int result = WriteReally(Of(file), written, offset);
    return half ? code : result;
  }
  static int WriteReally(File& self, const std::string& bytes, sqlite3_int64 offset) {
    const int size = static_cast<int>(bytes.size());
    const int code = self.methods().xWrite(self.real(), bytes.data(), size, offset);
    if (code == SQLITE_OK && self.disk != nullptr) UnsyncedFiles::Write(*self.disk, bytes, offset);
    return code;
  }

  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    File& self = Of(file);
    if (self.owner->Begin(SqliteCall::kCut) != SQLITE_OK) return SQLITE_IOERR_TRUNCATE;
    const int code = self.methods().xTruncate(self.real(), size);
    if (code == SQLITE_OK && self.disk != nullptr) UnsyncedFiles::Cut(*self.disk, size);
    return code;
  }
  static int Sync(sqlite3_file* file, int flags) {
    File& self = Of(file);
    if (self.owner->Begin(SqliteCall::kSync) != SQLITE_OK) return SQLITE_IOERR_FSYNC;
    if (self.owner->Is(SqliteFault::kLostSync)) {
      self.owner->sync_lost_ = true;
      return SQLITE_OK;
    }
    const int code = self.methods().xSync(self.real(), flags);
    if (code == SQLITE_OK && self.disk != nullptr) self.owner->disk_.Synced(*self.disk);
    return code;
  }

  // Passes a call on as it is.
  template <auto Method, class... Arguments>
  static auto Pass(sqlite3_file* file, Arguments... arguments) {
    return (Of(file).methods().*Method)(Of(file).real(), arguments...);
  }

  using Methods = sqlite3_io_methods;
  static const Methods* FileMethods() {
    static constexpr Methods kMethods = {
        .iVersion = 2,
        .xClose = Pass<&Methods::xClose>,
        .xRead = Pass<&Methods::xRead, void*, int, sqlite3_int64>,
        .xWrite = Write,
        .xTruncate = Truncate,
        .xSync = Sync,
        .xFileSize = Pass<&Methods::xFileSize, sqlite3_int64*>,
        .xLock = Pass<&Methods::xLock, int>,
        .xUnlock = Pass<&Methods::xUnlock, int>,
        .xCheckReservedLock = Pass<&Methods::xCheckReservedLock, int*>,
        .xFileControl = Pass<&Methods::xFileControl, int, void*>,
        .xSectorSize = Pass<&Methods::xSectorSize>,
        .xDeviceCharacteristics = Pass<&Methods::xDeviceCharacteristics>,
        .xShmMap = Pass<&Methods::xShmMap, int, int, int, void volatile**>,
        .xShmLock = Pass<&Methods::xShmLock, int, int, int>,
        .xShmBarrier = Pass<&Methods::xShmBarrier>,
        .xShmUnmap = Pass<&Methods::xShmUnmap, int>,
        .xFetch = nullptr,
        .xUnfetch = nullptr,
    };
    return &kMethods;
  }

  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_;
  UnsyncedFiles disk_;
  std::vector<SqliteCall> calls_;
  uint64_t fail_call_ = 0;
  SqliteFault fault_ = SqliteFault::kError;
  bool sync_lost_ = false;
  bool dead_ = false;
};

}  // namespace docmem::store::store_test
