#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/interceptors/principal.h"

namespace docmem::server {

/// What a caller shows of itself.
struct Credentials {
  std::string_view authorization;  ///< the header; empty: absent
  /// Of a client certificate that the transport has verified: alternative names, then the common
  /// name. Empty: it showed none.
  std::vector<std::string> certificate_names;
};

/// Turns credentials into a principal. Thread-safe.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  /// UNAUTHENTICATED: CREDENTIALS_MISSING or CREDENTIALS_INVALID.
  virtual absl::StatusOr<Principal> Authenticate(const Credentials& credentials) const = 0;
};

/// Everybody is `anonymous` with all rights: for loopback, or where the operator said so.
std::unique_ptr<Authenticator> MakeOpenAuthenticator();

/// Everybody whose certificate the transport has verified has all rights, under the first name in
/// it: where there is a client CA and no token file, the CA decides who is let in.
std::unique_ptr<Authenticator> MakeCertificateAuthenticator();

}  // namespace docmem::server
