#include "adapter_store/files/fault_injection_file_system.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/errors.h"
#include "adapter_store/status_macros.h"
#include "adapter_store/sync.h"

namespace docmem::store {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

absl::StatusOr<std::vector<std::byte>> ReadAll(FileSystem& files, const std::string& path) {
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.Open(path));
  std::vector<std::byte> bytes(file->bytes());
  STORE_RETURN_IF_ERROR(file->Read(0, bytes));
  return bytes;
}

absl::Status WriteAll(FileSystem& files, const std::string& path,
                      std::span<const std::byte> bytes) {
  STORE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(path));
  STORE_RETURN_IF_ERROR(file->Append(bytes));
  return file->Sync();
}

// What isn't durable yet, in the order in which it happened.
struct PendingName {
  enum class What { kCreated, kRenamed, kRemoved } what;
  std::string path;
  std::string renamed_from;
  std::optional<std::vector<std::byte>> lost_content;  // of a removed or replaced file
};

class State {
 public:
  explicit State(std::shared_ptr<FileSystem> base) : base_(std::move(base)) {}

  FileSystem& base() { return *base_; }

  void FailAt(uint64_t call, Fault fault) {
    MutexLock lock(&mutex_);
    fail_call_ = call == 0 ? 0 : calls_ + call;
    fault_ = fault;
    triggered_at_.clear();
  }

  uint64_t calls() {
    MutexLock lock(&mutex_);
    return calls_;
  }

  std::string triggered_at() {
    MutexLock lock(&mutex_);
    return triggered_at_;
  }

  void Crash() {
    MutexLock lock(&mutex_);
    dead_ = true;
  }

  uint64_t life() {
    MutexLock lock(&mutex_);
    return life_;
  }

  // The fault of the call that begins now; an error when the process is dead.
  absl::StatusOr<std::optional<Fault>> Begin(const char* call,
                                             std::optional<uint64_t> life = std::nullopt) {
    MutexLock lock(&mutex_);
    ++calls_;
    if (calls_ == fail_call_) {
      triggered_at_ = call;
      dead_ = dead_ || fault_ == Fault::kCrash || fault_ == Fault::kTornWrite;
      if (!dead_ || fault_ == Fault::kTornWrite) return std::optional<Fault>(fault_);
    }
    if (dead_ || (life.has_value() && *life != life_)) {
      return absl::UnavailableError("injected fault: the process is dead");
    }
    return std::optional<Fault>();
  }

  // Of a call that isn't `Append`, `Sync` or `Read`: these faults keep it from happening.
  absl::Status BeginNameCall(const char* call) {
    STORE_ASSIGN_OR_RETURN(std::optional<Fault> fault, Begin(call));
    if (!fault.has_value() || *fault == Fault::kLostSync || *fault == Fault::kBitFlip) {
      return absl::OkStatus();
    }
    return Injected(*fault);
  }

  static absl::Status Injected(Fault fault) {
    if (fault == Fault::kNoSpace) {
      return StoreError(absl::StatusCode::kResourceExhausted, reason::kDiskFull,
                        "injected fault: no space left");
    }
    return absl::UnavailableError("injected fault: input/output error");
  }

  void Created(const std::string& path) {
    MutexLock lock(&mutex_);
    pending_.push_back({PendingName::What::kCreated, path, "", std::nullopt});
    synced_bytes_[path] = 0;
  }

  void Synced(const std::string& path, uint64_t bytes) {
    MutexLock lock(&mutex_);
    const auto found = synced_bytes_.find(path);
    if (found != synced_bytes_.end()) found->second = bytes;
  }

  void Renamed(const std::string& from, const std::string& to,
               std::optional<std::vector<std::byte>> replaced) {
    MutexLock lock(&mutex_);
    const auto unsynced = synced_bytes_.extract(from);
    if (!unsynced.empty()) synced_bytes_[to] = unsynced.mapped();
    for (PendingName& name : pending_) {
      if (name.what == PendingName::What::kCreated && name.path == from) {
        name.path = to;
        return;
      }
    }
    pending_.push_back({PendingName::What::kRenamed, to, from, std::move(replaced)});
  }

  void Removed(const std::string& path, std::optional<std::vector<std::byte>> content) {
    MutexLock lock(&mutex_);
    synced_bytes_.erase(path);
    const size_t before = pending_.size();
    std::erase_if(pending_, [&](const PendingName& name) {
      return name.what == PendingName::What::kCreated && name.path == path;
    });
    if (pending_.size() < before) return;
    pending_.push_back({PendingName::What::kRemoved, path, "", std::move(content)});
  }

  void FolderSynced(const std::string& folder) {
    MutexLock lock(&mutex_);
    std::erase_if(pending_, [&](const PendingName& name) { return FolderOf(name.path) == folder; });
  }

  absl::Status LosePower() {
    MutexLock lock(&mutex_);
    for (auto name = pending_.rbegin(); name != pending_.rend(); ++name) {
      STORE_RETURN_IF_ERROR(TakeBack(*name));
    }
    for (const auto& [path, bytes] : synced_bytes_) {
      absl::StatusOr<std::vector<std::byte>> content = ReadAll(*base_, path);
      if (!content.ok() || content->size() <= bytes) continue;
      content->resize(bytes);
      STORE_RETURN_IF_ERROR(base_->Remove(path));
      STORE_RETURN_IF_ERROR(WriteAll(*base_, path, *content));
    }
    pending_.clear();
    synced_bytes_.clear();
    dead_ = false;
    fail_call_ = 0;
    ++life_;
    return absl::OkStatus();
  }

 private:
  absl::Status TakeBack(const PendingName& name) {
    if (name.what == PendingName::What::kCreated) return base_->Remove(name.path);
    if (name.what == PendingName::What::kRenamed) {
      STORE_RETURN_IF_ERROR(base_->Rename(name.path, name.renamed_from));
    }
    if (!name.lost_content.has_value()) return absl::OkStatus();
    return WriteAll(*base_, name.path, *name.lost_content);
  }

  const std::shared_ptr<FileSystem> base_;
  Mutex mutex_;
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t fail_call_ ABSL_GUARDED_BY(mutex_) = 0;
  Fault fault_ ABSL_GUARDED_BY(mutex_) = Fault::kError;
  std::string triggered_at_ ABSL_GUARDED_BY(mutex_);
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t life_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<PendingName> pending_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> synced_bytes_ ABSL_GUARDED_BY(mutex_);
};

class FaultyWritableFile : public WritableFile {
 public:
  FaultyWritableFile(std::shared_ptr<State> state, std::string path,
                     std::unique_ptr<WritableFile> base)
      : state_(std::move(state)),
        life_(state_->life()),
        path_(std::move(path)),
        base_(std::move(base)) {}

  absl::Status Append(std::span<const std::byte> bytes) override {
    STORE_ASSIGN_OR_RETURN(std::optional<Fault> fault, state_->Begin("Append", life_));
    if (!fault.has_value() || *fault == Fault::kLostSync) return AppendAll(bytes);
    if (*fault == Fault::kBitFlip) {
      std::vector<std::byte> damaged(bytes.begin(), bytes.end());
      if (!damaged.empty()) damaged[damaged.size() / 2] ^= std::byte{4};
      return AppendAll(damaged);
    }
    if (*fault != Fault::kError) STORE_RETURN_IF_ERROR(AppendAll(bytes.first(bytes.size() / 2)));
    return State::Injected(*fault);
  }

  absl::Status Sync() override {
    STORE_ASSIGN_OR_RETURN(std::optional<Fault> fault, state_->Begin("Sync", life_));
    if (fault == Fault::kLostSync) return absl::OkStatus();
    if (fault.has_value() && *fault != Fault::kBitFlip) return State::Injected(*fault);
    STORE_RETURN_IF_ERROR(base_->Sync());
    state_->Synced(path_, bytes_);
    return absl::OkStatus();
  }

 private:
  absl::Status AppendAll(std::span<const std::byte> bytes) {
    STORE_RETURN_IF_ERROR(base_->Append(bytes));
    bytes_ += bytes.size();
    return absl::OkStatus();
  }

  const std::shared_ptr<State> state_;
  const uint64_t life_;
  const std::string path_;
  const std::unique_ptr<WritableFile> base_;
  uint64_t bytes_ = 0;
};

class FaultyReadableFile : public ReadableFile {
 public:
  FaultyReadableFile(std::shared_ptr<State> state, std::unique_ptr<ReadableFile> base)
      : state_(std::move(state)), life_(state_->life()), base_(std::move(base)) {}

  uint64_t bytes() const override { return base_->bytes(); }

  absl::Status Read(uint64_t offset, std::span<std::byte> buffer) const override {
    STORE_ASSIGN_OR_RETURN(std::optional<Fault> fault, state_->Begin("Read", life_));
    if (fault.has_value() && *fault != Fault::kLostSync && *fault != Fault::kBitFlip) {
      return State::Injected(*fault);
    }
    STORE_RETURN_IF_ERROR(base_->Read(offset, buffer));
    if (fault == Fault::kBitFlip && !buffer.empty()) buffer[buffer.size() / 2] ^= std::byte{4};
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<State> state_;
  const uint64_t life_;
  const std::unique_ptr<ReadableFile> base_;
};

class FaultInjection : public FaultInjectionFileSystem {
 public:
  explicit FaultInjection(std::shared_ptr<FileSystem> base)
      : state_(std::make_shared<State>(std::move(base))) {}

  void FailAt(uint64_t call, Fault fault) override { state_->FailAt(call, fault); }
  uint64_t calls() const override { return state_->calls(); }
  bool triggered() const override { return !triggered_at().empty(); }
  std::string triggered_at() const override { return state_->triggered_at(); }
  void Crash() override { state_->Crash(); }
  absl::Status LosePower() override { return state_->LosePower(); }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    STORE_RETURN_IF_ERROR(state_->BeginNameCall("Create"));
    STORE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base().Create(path));
    state_->Created(path);
    return std::make_unique<FaultyWritableFile>(state_, path, std::move(file));
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    STORE_RETURN_IF_ERROR(state_->BeginNameCall("Open"));
    STORE_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, base().Open(path));
    return std::make_unique<FaultyReadableFile>(state_, std::move(file));
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    STORE_RETURN_IF_ERROR(state_->BeginNameCall("Rename"));
    std::optional<std::vector<std::byte>> replaced = ContentOf(to);
    STORE_RETURN_IF_ERROR(base().Rename(from, to));
    state_->Renamed(from, to, std::move(replaced));
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    STORE_RETURN_IF_ERROR(state_->BeginNameCall("Remove"));
    std::optional<std::vector<std::byte>> content = ContentOf(path);
    STORE_RETURN_IF_ERROR(base().Remove(path));
    state_->Removed(path, std::move(content));
    return absl::OkStatus();
  }

  absl::Status CreateFolder(const std::string& path) override {
    STORE_RETURN_IF_ERROR(state_->BeginNameCall("CreateFolder"));
    return base().CreateFolder(path);
  }

  absl::Status SyncFolder(const std::string& path) override {
    STORE_ASSIGN_OR_RETURN(std::optional<Fault> fault, state_->Begin("SyncFolder"));
    if (fault == Fault::kLostSync) return absl::OkStatus();
    if (fault.has_value() && *fault != Fault::kBitFlip) return State::Injected(*fault);
    STORE_RETURN_IF_ERROR(base().SyncFolder(path));
    state_->FolderSynced(path);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<FileEntry>> List(const std::string& path) override {
    STORE_RETURN_IF_ERROR(state_->BeginNameCall("List"));
    return base().List(path);
  }

  absl::StatusOr<FileEntry> Stat(const std::string& path) override {
    STORE_RETURN_IF_ERROR(state_->BeginNameCall("Stat"));
    return base().Stat(path);
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    STORE_RETURN_IF_ERROR(state_->BeginNameCall("Lock"));
    return base().Lock(path);
  }

 private:
  FileSystem& base() { return state_->base(); }

  std::optional<std::vector<std::byte>> ContentOf(const std::string& path) {
    absl::StatusOr<std::vector<std::byte>> content = ReadAll(base(), path);
    if (!content.ok()) return std::nullopt;
    return *std::move(content);
  }

  const std::shared_ptr<State> state_;
};

}  // namespace

std::shared_ptr<FaultInjectionFileSystem> FaultInjectionFileSystem::Over(
    std::shared_ptr<FileSystem> base) {
  return std::make_shared<FaultInjection>(std::move(base));
}

}  // namespace docmem::store
