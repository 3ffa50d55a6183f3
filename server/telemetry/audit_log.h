#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

/// One call that has ended. Ids and our own words, each checked for form: never a text of users.
struct AuditEntry {
  std::string principal;    ///< empty: nobody was recognised
  std::string peer;         ///< where the connection comes from, as gRPC writes it
  std::string_view method;  ///< such as "Document.Delete"
  std::string collection;   ///< empty: none was named, or not in a valid form; as the next
  std::string id;           ///< document or training; the first where there are several
  uint32_t ids = 0;         ///< how many
  std::string code;         ///< of gRPC
  std::string reason;       ///< empty: it went well
  std::string request_id;
  std::string trace_id;  ///< of the caller's W3C trace context; empty: none
  absl::Duration duration;
};

/// The audit log: one JSON object a line, appended to a file by a thread of its own, so that no
/// call waits for the disk. A line that can't be written is lost and counted, and calls go on
/// (docs/decisions/0036). Thread-safe.
class AuditLog {
 public:
  struct Parts {
    Metrics* metrics = nullptr;
    Log* log = nullptr;  ///< told of lost lines, at most once a minute
  };
  static constexpr size_t kMaxWaiting = 16384;  ///< lines; more than these are lost

  /// UNAVAILABLE where the file can't be opened for appending. It is made with rights for its owner
  /// alone. The parts must outlive the log.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, Parts parts);
  /// Writes what waits.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void Write(const AuditEntry& entry);
  /// Opens the file again by its name, for those who have moved it away.
  void Reopen();

  /// The line without its end; for tests.
  static std::string Format(const AuditEntry& entry, absl::Time time);

 private:
  class Impl;
  explicit AuditLog(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace docmem::server
