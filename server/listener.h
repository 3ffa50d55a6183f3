#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace docmem::server {

struct ListenerOptions {
  std::string address;                                   ///< HOST:PORT; port 0: any free one
  std::shared_ptr<grpc::ServerCredentials> credentials;  ///< null: plain text
  std::vector<grpc::Service*> services;                  ///< outlive the listener
};

/// A gRPC server on one address, with the keepalive and message limits of docs/api.
struct Listener {
  std::unique_ptr<grpc::Server> server;
  std::string address;  ///< as bound
};

/// UNAVAILABLE when the address is taken (ports are never shared) or can't be bound.
absl::StatusOr<Listener> Listen(const ListenerOptions& options);

}  // namespace docmem::server
