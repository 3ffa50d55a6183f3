#include "client/connection.h"

#include <utility>

#include "client/internal/retrying_channel.h"

namespace docmem::client {

absl::StatusOr<std::shared_ptr<const Connection>> Connection::Open(
    const ConnectionOptions& options) {
  auto channel = internal::RetryingChannel::Open(options);
  if (!channel.ok()) return channel.status();
  return std::shared_ptr<const Connection>(new Connection(*std::move(channel)));
}

Connection::Connection(std::unique_ptr<internal::RetryingChannel> channel)
    : channel_(std::move(channel)) {}

Connection::~Connection() = default;

}  // namespace docmem::client
