#include "server/access.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"

namespace docmem::server {

absl::StatusOr<std::unique_ptr<Access>> Access::Open(const ServerOptions& options, Log* log,
                                                     Metrics* metrics) {
  std::unique_ptr<Access> access(new Access(options, log, metrics));
  if (absl::Status status = access->OpenTokens(options); !status.ok()) return status;
  if (absl::Status status = access->OpenTls(); !status.ok()) return status;
  return access;
}

Access::Access(const ServerOptions& options, Log* log, Metrics* metrics)
    : log_(log),
      metrics_(metrics),
      tls_paths_{options.tls_cert, options.tls_key, options.tls_client_ca},
      token_file_({options.token_file}),
      tls_files_({options.tls_cert, options.tls_key, options.tls_client_ca}),
      authenticator_(options.tls_client_ca.empty() ? MakeOpenAuthenticator()
                                                   : MakeCertificateAuthenticator()),
      credentials_(grpc::InsecureServerCredentials()) {}

absl::Status Access::OpenTokens(const ServerOptions& options) {
  if (options.token_file.empty()) return absl::OkStatus();
  auto tokens = FileAuthenticator::Open(options.token_file);
  if (!tokens.ok()) return tokens.status();
  tokens_ = tokens->get();
  authenticator_ = *std::move(tokens);
  log_->Info("token file read", {{"principals", tokens_->principals()}});
  return absl::OkStatus();
}

absl::Status Access::OpenTls() {
  if (tls_paths_.certificate.empty()) return absl::OkStatus();
  absl::StatusOr<TlsMaterial> material = ReadTlsMaterial(tls_paths_, absl::Now());
  if (!material.ok()) return material.status();
  metrics_->SetCertificateExpiry(material->expires);
  log_->Info("certificate read", {{"expires", absl::FormatTime(material->expires)}});
  auto tls = std::make_shared<TlsCredentials>(*std::move(material));
  tls_ = tls.get();
  credentials_ = std::move(tls);
  return absl::OkStatus();
}

void Access::Refresh(bool all) {
  if ((token_file_.Changed() || all) && tokens_ != nullptr) RefreshTokens();
  if ((tls_files_.Changed() || all) && tls_ != nullptr) RefreshTls();
}

void Access::RefreshTokens() {
  const absl::Status status = tokens_->Reload();
  if (status.ok()) {
    log_->Info("token file read again", {{"principals", tokens_->principals()}});
    return;
  }
  metrics_->TokenReloadFailed();
  log_->Error("token file not taken; the one before stays",
              {{"message", std::string(status.message())}});
}

void Access::RefreshTls() {
  absl::StatusOr<TlsMaterial> material = ReadTlsMaterial(tls_paths_, absl::Now());
  if (material.ok()) {
    metrics_->SetCertificateExpiry(material->expires);
    log_->Info("certificate read again", {{"expires", absl::FormatTime(material->expires)}});
    tls_->Take(*std::move(material));
    return;
  }
  metrics_->TlsReloadFailed();
  log_->Error("certificate not taken; the one before stays",
              {{"message", std::string(material.status().message())}});
}

}  // namespace docmem::server
