#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <cstring>

namespace docmem::store::store_test {

/// What goes wrong at the chosen call of the database's own files.
enum class SqliteFault {
  kError,      ///< the call fails and has no effect
  kFull,       ///< a write writes half and says that the disk is full; other calls as kError
  kCrash,      ///< this call and all later ones fail without effect: the process is dead
  kTornWrite,  ///< as kCrash, but a write has written half
};

/// While one lives, databases that are opened go through it: it counts the calls that change files
/// (opening, writing, syncing, cutting, deleting) and lets one go wrong. One at a time; all that
/// was opened meanwhile must be closed before it goes.
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
    fail_call_ = call == 0 ? 0 : calls_ + call;
    fault_ = fault;
  }
  uint64_t calls() const { return calls_; }

 private:
  // What SQLite allocates for a file; the real one follows it.
  struct File {
    sqlite3_file base;
    FaultySqlite* owner;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
    const sqlite3_io_methods& methods() { return *real()->pMethods; }
  };
  static File& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
  static FaultySqlite& Of(sqlite3_vfs* vfs) { return *static_cast<FaultySqlite*>(vfs->pAppData); }

  // SQLITE_OK: the call goes on.
  int Begin() {
    const bool chosen = ++calls_ == fail_call_;
    if (!chosen && !dead_) return SQLITE_OK;
    dead_ = dead_ || fault_ == SqliteFault::kCrash || fault_ == SqliteFault::kTornWrite;
    return chosen && fault_ == SqliteFault::kFull ? SQLITE_FULL : SQLITE_IOERR;
  }

  static int Open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags,
                  int* out_flags) {
    FaultySqlite& self = Of(vfs);
    File& made = Of(file);
    made.base.pMethods = nullptr;
    made.owner = &self;
    if (self.Begin() != SQLITE_OK) return SQLITE_CANTOPEN;
    std::memset(made.real(), 0, static_cast<size_t>(self.real_->szOsFile));
    const int code = self.real_->xOpen(self.real_, name, made.real(), flags, out_flags);
    if (made.real()->pMethods != nullptr) made.base.pMethods = FileMethods();
    return code;
  }

  static int Delete(sqlite3_vfs* vfs, const char* name, int sync) {
    FaultySqlite& self = Of(vfs);
    const int code = self.Begin();
    return code != SQLITE_OK ? SQLITE_IOERR_DELETE : self.real_->xDelete(self.real_, name, sync);
  }

  static int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
    File& self = Of(file);
    const bool was_dead = self.owner->dead_;
    const int code = self.owner->Begin();
    const SqliteFault fault = self.owner->fault_;
    const bool half = !was_dead && code != SQLITE_OK &&
                      (fault == SqliteFault::kFull || fault == SqliteFault::kTornWrite);
    if (code != SQLITE_OK && !half) return SQLITE_IOERR_WRITE;
    const int written = self.methods().xWrite(self.real(), bytes, half ? size / 2 : size, offset);
    return half ? code : written;
  }

  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    if (Of(file).owner->Begin() != SQLITE_OK) return SQLITE_IOERR_TRUNCATE;
    return Of(file).methods().xTruncate(Of(file).real(), size);
  }
  static int Sync(sqlite3_file* file, int flags) {
    if (Of(file).owner->Begin() != SQLITE_OK) return SQLITE_IOERR_FSYNC;
    return Of(file).methods().xSync(Of(file).real(), flags);
  }

  // Passes a call on as it is.
  template <auto kMember, class... Arguments>
  static auto Pass(sqlite3_file* file, Arguments... arguments) {
    return (Of(file).methods().*kMember)(Of(file).real(), arguments...);
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
  uint64_t calls_ = 0;
  uint64_t fail_call_ = 0;
  SqliteFault fault_ = SqliteFault::kError;
  bool dead_ = false;
};

}  // namespace docmem::store::store_test
