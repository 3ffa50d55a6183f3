#include "server/telemetry/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "adapter_store/sync.h"

namespace docmem::server {
namespace {

constexpr absl::Duration kComplaintInterval = absl::Minutes(1);

// -1 and errno where it can't be opened.
int OpenFile(const std::string& path) {
  constexpr mode_t kOwnerOnly = 0600;
  return open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kOwnerOnly);
}

}  // namespace

class AuditLog::Impl {
 public:
  Impl(std::string path, int file, Parts parts)
      : path_(std::move(path)), parts_(parts), file_(file), thread_([this] { Run(); }) {}

  ~Impl() {
    {
      const store::MutexLock lock(&mutex_);
      stopping_ = true;
      wake_.SignalAll();
    }
    thread_.join();
    if (file_ >= 0) close(file_);
  }

  void Add(std::string line) {
    const store::MutexLock lock(&mutex_);
    if (waiting_.size() >= kMaxWaiting) {
      ++lost_;
    } else {
      waiting_.push_back(std::move(line));
    }
    wake_.SignalAll();
  }

  void Reopen() {
    const store::MutexLock lock(&mutex_);
    reopen_ = true;
    wake_.SignalAll();
  }

 private:
  void Run() {
    for (;;) {
      std::vector<std::string> lines;
      uint64_t lost = 0;
      bool reopen = false;
      {
        const store::MutexLock lock(&mutex_);
        while (waiting_.empty() && lost_ == 0 && !reopen_ && !stopping_) wake_.Wait(&mutex_);
        if (waiting_.empty() && lost_ == 0 && !reopen_) return;
        lines.swap(waiting_);
        lost = std::exchange(lost_, 0);
        reopen = std::exchange(reopen_, false);
      }
      if (reopen) {
        CloseFile();
        file_ = OpenFile(path_);  // where that fails, the next line tries again
      }
      if (lost > 0) Lost(lost, "they came faster than they could be written");
      WriteAll(lines);
    }
  }

  void WriteAll(const std::vector<std::string>& lines) {
    for (size_t i = 0; i < lines.size(); ++i) {
      if (file_ < 0) file_ = OpenFile(path_);
      if (file_ >= 0 && WriteLine(lines[i])) continue;
      const std::string why = std::strerror(errno);
      CloseFile();
      return Lost(lines.size() - i, why);
    }
  }

  bool WriteLine(const std::string& line) {
    // What was cut off before stays a line of its own.
    const std::string bytes = absl::StrCat(std::exchange(torn_, false) ? "\n" : "", line, "\n");
    for (size_t written = 0; written < bytes.size();) {
      const ssize_t n = write(file_, bytes.data() + written, bytes.size() - written);
      if (n < 0 && errno == EINTR) continue;
      torn_ = torn_ || (n < 0 && written > 0);
      if (n < 0) return false;
      written += static_cast<size_t>(n);
    }
    return true;
  }

  void CloseFile() {
    if (file_ >= 0) close(file_);
    file_ = -1;
  }

  void Lost(uint64_t lines, const std::string& why) {
    parts_.metrics->AuditLinesLost(lines);
    if (absl::Now() < next_complaint_) return;
    next_complaint_ = absl::Now() + kComplaintInterval;
    parts_.log->Error("audit lines lost", {{"lines", lines}, {"file", path_}, {"why", why}});
  }

  const std::string path_;
  const Parts parts_;
  store::Mutex mutex_;
  store::CondVar wake_;
  std::vector<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reopen_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The thread's own.
  int file_;
  bool torn_ = false;
  absl::Time next_complaint_ = absl::InfinitePast();
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path, Parts parts) {
  const int file = OpenFile(path);
  if (file < 0) {
    return absl::UnavailableError(
        absl::StrCat("--audit-log ", path, " can't be opened: ", std::strerror(errno)));
  }
  return std::unique_ptr<AuditLog>(new AuditLog(std::make_unique<Impl>(path, file, parts)));
}

AuditLog::AuditLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AuditLog::~AuditLog() = default;

void AuditLog::Write(const AuditEntry& entry) { impl_->Add(Format(entry, absl::Now())); }

void AuditLog::Reopen() { impl_->Reopen(); }

std::string AuditLog::Format(const AuditEntry& entry, absl::Time time) {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
  const auto add = [&line](const char* key, const std::string& value) {
    if (!value.empty()) line[key] = value;
  };
  add("principal", entry.principal);
  add("peer", entry.peer);
  line["method"] = entry.method;
  add("collection", entry.collection);
  add("id", entry.id);
  if (entry.ids > 1) line["ids"] = entry.ids;
  line["code"] = entry.code;
  add("reason", entry.reason);
  add("request_id", entry.request_id);
  add("trace_id", entry.trace_id);
  line["seconds"] = absl::ToDoubleSeconds(entry.duration);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace docmem::server
