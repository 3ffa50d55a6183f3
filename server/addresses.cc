#include "server/addresses.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace docmem::server {

absl::Status WriteAddresses(const Addresses& addresses, const std::string& path) {
  const nlohmann::ordered_json json = {
      {"grpc", addresses.grpc}, {"health", addresses.health}, {"metrics", addresses.metrics}};
  const std::string temporary = path + ".new";
  std::ofstream file(temporary);
  file << json.dump() << '\n';
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  if (file && !error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("can't write --addresses-file ", path, "; is its folder there and writable?"));
}

}  // namespace docmem::server
