// Asks a daemon for its phase; nobody listens on port 1, so it prints that.
#include <iostream>

#include "client/admin_client.h"

int main() {
  const auto connection =
      docmem::client::Connection::Open({.address = "127.0.0.1:1", .retry = {.enabled = false}});
  if (!connection.ok()) return 1;
  docmem::client::AdminClient admin(*connection);
  const auto status = admin.GetStatus({.timeout = absl::Seconds(10)});
  std::cout << absl::StatusCodeToString(status.status().code()) << std::endl;
  return 0;
}
