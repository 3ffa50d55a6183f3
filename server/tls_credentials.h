#pragma once

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "adapter_store/sync.h"
#include "server/tls_material.h"

namespace docmem::server {

/// TLS for one listener, from 1.2 on, whose material can be changed while it serves. With a client
/// CA every client must show a certificate of it. Must outlive the server. Thread-safe.
///
/// Asks gRPC's core for what its C++ interface lacks: a certificate that is handed over in memory
/// at the next handshake (docs/decisions/0033).
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  /// The material was checked; whether there is a client CA never changes.
  explicit TlsCredentials(TlsMaterial material);
  ~TlsCredentials() override;

  /// For the handshakes that begin from now on; open connections stay.
  void Take(TlsMaterial material);

  /// Aborts: the guard authenticates.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override;

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override;
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);

  grpc_server_credentials* const core_;
  store::Mutex mutex_;
  TlsMaterial material_ ABSL_GUARDED_BY(mutex_);
  bool fetched_ ABSL_GUARDED_BY(mutex_) = false;  // by the listener, as it is now
};

}  // namespace docmem::server
