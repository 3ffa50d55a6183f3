#include "server/listener.h"

#include <grpc/compression.h>
#include <grpc/grpc.h>
#include <grpcpp/security/server_credentials.h>

#include "absl/strings/str_cat.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

void SetArguments(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // gRPC unfolds a compressed message before it looks at the limit: a thousand times as much memory
  // as came over the wire.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
}

}  // namespace

absl::StatusOr<Listener> Listen(const ListenerOptions& options) {
  grpc::ServerBuilder builder;
  SetArguments(builder);
  int port = 0;
  builder.AddListeningPort(
      options.address,
      options.credentials ? options.credentials : grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  Listener listener;
  listener.server = builder.BuildAndStart();
  if (listener.server == nullptr || port <= 0) {
    return absl::UnavailableError(absl::StrCat("can't listen on ", options.address,
                                               ": it is in use or not an address of "
                                               "this machine"));
  }
  listener.address = absl::StrCat(options.address.substr(0, options.address.rfind(':')), ":", port);
  return listener;
}

}  // namespace docmem::server
