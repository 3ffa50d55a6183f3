#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/config.h"

namespace docmem::server {

/// How a setting is written: text, whole number, size ("512MiB" or bytes), or yes/no.
enum class SettingKind { kText, kNumber, kSize, kFlag };

/// One setting of the daemon under its three names: flag `--max-queue`, key `max_queue`, variable
/// `DOCMEM_MAX_QUEUE`.
struct Setting {
  std::string key;
  SettingKind kind = SettingKind::kText;
  std::string placeholder;  ///< of the value in the help
  std::string help;
  /// Takes the value as it is written on the command line; the error says what is allowed.
  std::function<absl::Status(ServerOptions&, const std::string&)> assign;
  std::function<std::string(const ServerOptions&)> value;  ///< as in TOML

  std::string flag() const;
  std::string variable() const;
};

/// All settings in the order of the help.
std::vector<Setting> AllSettings();

/// What no setting says alone: required ones, and addresses that need more than
/// loopback does.
absl::Status CheckTogether(const ServerOptions& options);

/// "512MiB", "10GB" or a number of bytes.
absl::StatusOr<uint64_t> ParseSize(const std::string& text);

}  // namespace docmem::server
