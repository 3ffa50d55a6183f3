#pragma once

#include <memory>
#include <string>

#include "adapter_store/sync.h"
#include "server/interceptors/authenticator.h"
#include "server/interceptors/token_file.h"

namespace docmem::server {

/// Knows those whom a token file names. A token that was sent decides alone: an unknown one isn't
/// made good by a certificate. Thread-safe.
class FileAuthenticator final : public Authenticator {
 public:
  /// Errors as of `TokenFile::Read`.
  static absl::StatusOr<std::unique_ptr<FileAuthenticator>> Open(const std::string& path);

  absl::StatusOr<Principal> Authenticate(const Credentials& credentials) const override;

  /// Reads the file again: the calls that come next are judged by it, open ones go on. On failure
  /// what was read before stays.
  absl::Status Reload();

  size_t principals() const;

 private:
  FileAuthenticator(std::string path, TokenFile file);
  std::shared_ptr<const TokenFile> file() const;

  const std::string path_;
  mutable store::Mutex mutex_;
  std::shared_ptr<const TokenFile> file_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace docmem::server
