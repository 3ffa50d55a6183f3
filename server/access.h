#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/config.h"
#include "server/interceptors/authenticator.h"
#include "server/interceptors/file_authenticator.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"
#include "server/tls_credentials.h"
#include "server/tls_material.h"
#include "server/watched_files.h"

namespace docmem::server {

/// Who gets in and through which door, from the settings, and kept up with their files. Used by one
/// thread but for what it hands out, which lives as long as this.
class Access {
 public:
  /// `log` and `metrics` must outlive it. Errors as of `TokenFile::Read` and `ReadTlsMaterial`.
  static absl::StatusOr<std::unique_ptr<Access>> Open(const ServerOptions& options, Log* log,
                                                      Metrics* metrics);

  const Authenticator* authenticator() const { return authenticator_.get(); }
  /// Of the API's listener.
  const std::shared_ptr<grpc::ServerCredentials>& credentials() const { return credentials_; }

  /// Reads again what has changed, or everything where `all` is set. What can't be taken is logged
  /// and counted, and what was there before stays. Call it about once a second.
  void Refresh(bool all);

 private:
  Access(const ServerOptions& options, Log* log, Metrics* metrics);
  absl::Status OpenTokens(const ServerOptions& options);
  absl::Status OpenTls();
  void RefreshTokens();
  void RefreshTls();

  Log* const log_;
  Metrics* const metrics_;
  const TlsPaths tls_paths_;
  // Before the files are read, so that no change is missed; without a file there is none.
  WatchedFiles token_file_;
  WatchedFiles tls_files_;
  std::unique_ptr<Authenticator> authenticator_;
  FileAuthenticator* tokens_ = nullptr;  // the same, or null without a token file
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  TlsCredentials* tls_ = nullptr;  // the same, or null without TLS
};

}  // namespace docmem::server
