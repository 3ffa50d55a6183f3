#pragma once

#include <string>

#include "absl/status/status.h"

namespace docmem::server {

/// Where the daemon listens, as bound: HOST:PORT each.
struct Addresses {
  std::string grpc;
  std::string health;
  std::string metrics;
};

/// Writes {"grpc": …, "health": …, "metrics": …} so that a reader sees all of it or nothing.
absl::Status WriteAddresses(const Addresses& addresses, const std::string& path);

}  // namespace docmem::server
