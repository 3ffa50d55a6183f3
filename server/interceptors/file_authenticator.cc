#include "server/interceptors/file_authenticator.h"

#include <utility>

#include "absl/strings/match.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

constexpr std::string_view kScheme = "bearer ";

absl::Status Unauthenticated(const char* reason, const char* message) {
  return Error(absl::StatusCode::kUnauthenticated, reason, message);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileAuthenticator>> FileAuthenticator::Open(
    const std::string& path) {
  absl::StatusOr<TokenFile> file = TokenFile::Read(path);
  if (!file.ok()) return file.status();
  return std::unique_ptr<FileAuthenticator>(new FileAuthenticator(path, *std::move(file)));
}

FileAuthenticator::FileAuthenticator(std::string path, TokenFile file)
    : path_(std::move(path)), file_(std::make_shared<const TokenFile>(std::move(file))) {}

absl::StatusOr<Principal> FileAuthenticator::Authenticate(const Credentials& credentials) const {
  const std::shared_ptr<const TokenFile> known = file();
  if (!credentials.authorization.empty()) {
    const std::string header(credentials.authorization);
    if (!absl::StartsWithIgnoreCase(header, {kScheme.data(), kScheme.size()})) {
      return Unauthenticated(reason::kCredentialsInvalid,
                             "the header authorization must be Bearer and a token");
    }
    const Principal* found = known->FindToken(header.substr(kScheme.size()));
    if (found != nullptr) return *found;
    return Unauthenticated(reason::kCredentialsInvalid, "the token isn't one of this daemon's");
  }
  for (const std::string& name : credentials.certificate_names) {
    if (const Principal* found = known->FindCertificate(name)) return *found;
  }
  if (!credentials.certificate_names.empty()) {
    return Unauthenticated(reason::kCredentialsInvalid,
                           "the token file has no line for this certificate, and no token came");
  }
  return Unauthenticated(reason::kCredentialsMissing,
                         "a token is needed, as the header `authorization: Bearer TOKEN`");
}

absl::Status FileAuthenticator::Reload() {
  absl::StatusOr<TokenFile> read = TokenFile::Read(path_);
  if (!read.ok()) return read.status();
  auto next = std::make_shared<const TokenFile>(*std::move(read));
  const store::MutexLock lock(&mutex_);
  file_ = std::move(next);
  return absl::OkStatus();
}

size_t FileAuthenticator::principals() const { return file()->principals(); }

std::shared_ptr<const TokenFile> FileAuthenticator::file() const {
  const store::MutexLock lock(&mutex_);
  return file_;
}

}  // namespace docmem::server
