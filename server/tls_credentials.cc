#include "server/tls_credentials.h"

#include <grpc/grpc.h>

#include <cstdlib>
#include <utility>

namespace docmem::server {

TlsCredentials::TlsCredentials(TlsMaterial material)
    : core_(grpc_ssl_server_credentials_create_with_options(
          grpc_ssl_server_credentials_create_options_using_config_fetcher(
              material.client_ca.empty()
                  ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                  : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
              &Fetch, this))),
      material_(std::move(material)) {}

TlsCredentials::~TlsCredentials() { grpc_server_credentials_release(core_); }

void TlsCredentials::Take(TlsMaterial material) {
  const store::MutexLock lock(&mutex_);
  material_ = std::move(material);
  fetched_ = false;
}

void TlsCredentials::SetAuthMetadataProcessor(
    const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) {
  std::abort();
}

int TlsCredentials::AddPortToServer(const std::string& address, grpc_server* server) {
  return grpc_server_add_http2_port(server, address.c_str(), core_);
}

grpc_ssl_certificate_config_reload_status TlsCredentials::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  auto* const credentials = static_cast<TlsCredentials*>(self);
  const store::MutexLock lock(&credentials->mutex_);
  if (std::exchange(credentials->fetched_, true)) {
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  }
  const TlsMaterial& material = credentials->material_;
  const grpc_ssl_pem_key_cert_pair pair{material.key.c_str(), material.certificate.c_str()};
  // gRPC 1.51 aborts without any authority, also where it never asks a client for a certificate.
  const std::string& authorities =
      material.client_ca.empty() ? material.certificate : material.client_ca;
  *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace docmem::server
