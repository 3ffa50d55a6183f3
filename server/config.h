#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "adapter_store/unload_policy.h"
#include "server/telemetry/log.h"

namespace docmem::server {

/// The daemon's settings, all checked. Each is declared once, in config_settings.cc, with its flag,
/// variable, key, range and help.
struct ServerOptions {
  std::string model;                      ///< folder; not empty but in recovery mode
  std::string data;                       ///< folder; not empty
  std::string registry;                   ///< of libpq; empty: SQLite inside `data`
  std::string artifacts;                  ///< shared with other replicas; empty: inside `data`
  std::string listen = "127.0.0.1:7600";  ///< HOST:PORT, here and below; port 0: any free one
  std::string health_listen = "127.0.0.1:7601";
  std::string metrics_listen = "127.0.0.1:7602";
  std::string device = "cpu";
  std::string dtype = "auto";
  std::string prompt_format;  ///< empty: chosen from the model's own template
  uint32_t threads = 0;       ///< 0: all cores
  uint64_t device_budget_bytes = uint64_t{1} << 30;
  uint64_t host_budget_bytes = 0;  ///< not 0 only beside a GPU
  uint64_t kv_budget_bytes = uint64_t{512} << 20;
  std::string unload_policy = store::kUnloadPolicies[0].name;
  uint64_t disk_budget_bytes = uint64_t{16} << 30;
  uint32_t max_queue = 256;
  uint32_t max_sequences = 32;
  uint32_t max_batch_tokens = 256;
  uint32_t question_reserve = 512;  ///< tokens
  uint32_t max_adapter_rank = 64;
  uint32_t drain_seconds = 60;
  uint32_t watchdog_seconds = 120;
  uint32_t checkpoint_seconds = 30;
  LogLevel log_level = LogLevel::kInfo;
  bool recovery = false;
  bool insecure = false;
  bool no_auth = false;
  std::string token_file;  ///< empty: none, here and below
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string audit_log;
  std::string addresses_file;  ///< empty: none
};

/// Gives an environment variable, or null.
using Environment = std::function<const char*(const char*)>;

/// What the command line asks for.
struct Invocation {
  ServerOptions options;
  /// Not empty: print this and exit 0 (`--help`, `--version`, `--check-config`).
  std::string print;
};

/// Settles every setting: flag, else DOCMEM_* variable, else TOML file, else default. An error
/// names flag, variable, or file and line; unknown keys, wrong types and values out of range are
/// errors.
/// `--check-config` prints each value with its origin, in TOML.
absl::StatusOr<Invocation> ReadConfig(int argc, const char* const* argv,
                                      const Environment& environment);

/// "127.0.0.1:7600" or "[::1]:7600" apart; false when it isn't HOST:PORT.
bool SplitAddress(const std::string& address, std::string* host, int* port);

}  // namespace docmem::server
