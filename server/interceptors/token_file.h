#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/interceptors/principal.h"

namespace docmem::server {

/// Who may call, as the token file says. One line is one credential of one principal, its fields
/// apart by blanks:
///
///   NAME  sha256:<digest of a token>|cert:<name in a client certificate>  ROLE  COLLECTIONS
///   [max_in_flight=N] [max_queued=N]
///
/// NAME is 1 to 128 of A-Z a-z 0-9 . _ @ -; ROLE is query, write or admin; COLLECTIONS are ids
/// apart by commas, or * for all; the limits are those of `QuestionLimits`. A name on several lines
/// is one principal with several credentials, so that a token can be changed without a gap; those
/// lines agree in all else. Empty lines and lines that begin with # say nothing. Const after
/// parsing.
class TokenFile {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  TokenFile(TokenFile&&) = default;
  TokenFile& operator=(TokenFile&&) = default;

  /// INVALID_ARGUMENT naming line and field, without quoting a credential; also for a text that
  /// names nobody, which is more likely cut off than meant.
  static absl::StatusOr<TokenFile> Parse(const std::string& text);
  /// The same of a file; UNAVAILABLE where it can't be read. Messages begin with `path`.
  static absl::StatusOr<TokenFile> Read(const std::string& path);

  /// Null: nobody's. The principal lives as long as this.
  const Principal* FindToken(const std::string& token) const;
  const Principal* FindCertificate(const std::string& name) const;

  size_t principals() const { return principals_.size(); }

 private:
  TokenFile() = default;
  absl::Status TakeLine(const std::string& line);

  std::map<std::string, Principal> principals_;           // by name
  std::map<std::string, const Principal*> tokens_;        // by SHA-256, in hexadecimal
  std::map<std::string, const Principal*> certificates_;  // by name in the certificate
};

}  // namespace docmem::server
