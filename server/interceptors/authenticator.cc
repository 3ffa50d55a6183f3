#include "server/interceptors/authenticator.h"

#include "server/errors/error.h"

namespace docmem::server {
namespace {

class OpenAuthenticator final : public Authenticator {
 public:
  absl::StatusOr<Principal> Authenticate(const Credentials&) const override {
    return Principal{"anonymous", Role::kAdmin, AllowedCollections::All()};
  }
};

class CertificateAuthenticator final : public Authenticator {
 public:
  absl::StatusOr<Principal> Authenticate(const Credentials& credentials) const override {
    if (!credentials.certificate_names.empty()) {
      return Principal{credentials.certificate_names.front(), Role::kAdmin,
                       AllowedCollections::All()};
    }
    return Error(absl::StatusCode::kUnauthenticated, reason::kCredentialsMissing,
                 "a client certificate with a name in it is needed");
  }
};

}  // namespace

std::unique_ptr<Authenticator> MakeOpenAuthenticator() {
  return std::make_unique<OpenAuthenticator>();
}

std::unique_ptr<Authenticator> MakeCertificateAuthenticator() {
  return std::make_unique<CertificateAuthenticator>();
}

}  // namespace docmem::server
