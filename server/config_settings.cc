#include "server/config_settings.h"

#include <arpa/inet.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace docmem::server {
namespace {

using Check = std::function<absl::Status(const std::string&)>;

std::string Quote(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

Setting Text(const char* key, std::string ServerOptions::* member, const char* placeholder,
             const char* help, Check check = {}) {
  return {.key = key,
          .kind = SettingKind::kText,
          .placeholder = placeholder,
          .help = help,
          .assign =
              [member, check = std::move(check)](ServerOptions& options, const std::string& text) {
                absl::Status status = check ? check(text) : absl::OkStatus();
                if (status.ok()) options.*member = text;
                return status;
              },
          .value = [member](const ServerOptions& options) { return Quote(options.*member); }};
}

struct Range {
  uint32_t least;
  uint32_t most;
};

Setting Number(const char* key, uint32_t ServerOptions::* member, Range range, const char* help) {
  return {
      .key = key,
      .kind = SettingKind::kNumber,
      .placeholder = "N",
      .help = help,
      .assign =
          [member, range](ServerOptions& options, const std::string& text) {
            uint32_t number = 0;
            if (!absl::SimpleAtoi(text, &number) || number < range.least || number > range.most) {
              return absl::InvalidArgumentError(
                  absl::StrCat("must be a whole number from ", range.least, " to ", range.most));
            }
            options.*member = number;
            return absl::OkStatus();
          },
      .value = [member](const ServerOptions& options) { return absl::StrCat(options.*member); }};
}

Setting Size(const char* key, uint64_t ServerOptions::* member, const char* help) {
  return {
      .key = key,
      .kind = SettingKind::kSize,
      .placeholder = "BYTES",
      .help = help,
      .assign =
          [member](ServerOptions& options, const std::string& text) {
            const absl::StatusOr<uint64_t> size = ParseSize(text);
            if (size.ok()) options.*member = *size;
            return size.status();
          },
      .value = [member](const ServerOptions& options) { return absl::StrCat(options.*member); }};
}

Setting Flag(const char* key, bool ServerOptions::* member, const char* help) {
  return {.key = key,
          .kind = SettingKind::kFlag,
          .help = help,
          .assign =
              [member](ServerOptions& options, const std::string& text) {
                if (!absl::SimpleAtob(text, &(options.*member))) {
                  return absl::InvalidArgumentError("must be true or false");
                }
                return absl::OkStatus();
              },
          .value =
              [member](const ServerOptions& options) {
                return std::string(options.*member ? "true" : "false");
              }};
}

Setting Level(const char* key, const char* help) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  return {.key = key,
          .kind = SettingKind::kText,
          .placeholder = "LEVEL",
          .help = help,
          .assign =
              [](ServerOptions& options, const std::string& text) {
                if (ParseLogLevel(text, &options.log_level)) return absl::OkStatus();
                return absl::InvalidArgumentError("must be debug, info, warning or error");
              },
          .value =
              [](const ServerOptions& options) {
                return Quote(kNames[static_cast<int>(options.log_level)]);
              }};
}

absl::Status CheckAddress(const std::string& text) {
  std::string host;
  int port = 0;
  if (SplitAddress(text, &host, &port)) return absl::OkStatus();
  return absl::InvalidArgumentError("must be HOST:PORT, such as 127.0.0.1:7600");
}

// Settings are printed, and command lines can be read by others.
absl::Status CheckRegistry(const std::string& text) {
  const size_t user = text.find("://");
  const size_t host = text.find('@');
  const bool in_url =
      user != std::string::npos && host != std::string::npos && text.find(':', user + 3) < host;
  if (!in_url && text.find("password=") == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "must not hold a password: put it into the file that PGPASSFILE names");
}

absl::Status CheckArtifacts(const std::string& text) {
  const bool known = text.rfind("s3://", 0) == 0 || text.rfind('/', 0) == 0;
  if (known || text.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("must be an absolute path or s3://BUCKET/PREFIX");
}

absl::Status CheckDevice(const std::string& text) {
  const std::string number = text.rfind("cuda:", 0) == 0 ? text.substr(5) : "";
  uint32_t index = 0;
  if (text == "cpu" || absl::SimpleAtoi(number, &index)) return absl::OkStatus();
  return absl::InvalidArgumentError("must be cpu or cuda:N");
}

absl::Status CheckDtype(const std::string& text) {
  for (const char* known : {"auto", "float32", "bfloat16", "int8"}) {
    if (text == known) return absl::OkStatus();
  }
  return absl::InvalidArgumentError("must be auto, float32, bfloat16 or int8");
}

absl::Status CheckUnloadPolicy(const std::string& text) {
  if (store::MakeUnloadPolicy(text) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("must be greedy-dual-size or lru");
}

// Of names only localhost: another may resolve to any address, also one that begins with "127.".
bool IsLoopback(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

absl::Status CheckAccess(const ServerOptions& options) {
  if (options.no_auth && !options.token_file.empty()) {
    return absl::InvalidArgumentError(
        "--no-auth and --token-file contradict each other; leave one out");
  }
  const bool tls = !options.tls_cert.empty();
  if (tls != !options.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key go together; one is missing");
  }
  if (!tls && !options.tls_client_ca.empty()) {
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-cert and --tls-key");
  }
  std::string host;
  int port = 0;
  SplitAddress(options.listen, &host, &port);
  if (IsLoopback(host)) return absl::OkStatus();
  const bool readable = !tls && !options.insecure;
  const bool anybody =
      options.token_file.empty() && options.tls_client_ca.empty() && !options.no_auth;
  if (!readable && !anybody) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--listen ", options.listen, " isn't loopback",
      readable ? "; it would be plain text: give --tls-cert and --tls-key, or --insecure if the "
                 "network itself keeps others from reading along"
               : "",
      anybody ? "; anybody could call: give --token-file or --tls-client-ca, or --no-auth if the "
                "network itself keeps others out"
              : ""));
}

}  // namespace

std::string Setting::flag() const { return "--" + absl::StrReplaceAll(key, {{"_", "-"}}); }

std::string Setting::variable() const {
  std::string name = "DOCMEM_" + key;
  std::transform(name.begin(), name.end(), name.begin(), ::toupper);
  return name;
}

std::vector<Setting> AllSettings() {
  using O = ServerOptions;
  constexpr uint32_t kMany = 1'000'000;
  return {
      Text("model", &O::model, "DIR", "Folder of the model; required but with --recovery"),
      Text("data", &O::data, "DIR", "Folder for documents, caches and adapters; required"),
      Text("listen", &O::listen, "HOST:PORT", "Address of the API; port 0: any free one",
           CheckAddress),
      Text("health_listen", &O::health_listen, "HOST:PORT",
           "Address of the health service; plain, without authentication", CheckAddress),
      Text("metrics_listen", &O::metrics_listen, "HOST:PORT",
           "Address of /metrics; plain, without authentication", CheckAddress),
      Text(
          "registry", &O::registry, "URL",
          "PostgreSQL database for the registry, such as postgresql://docmem@host/docmem, with its "
          "password in PGPASSFILE; default: a SQLite file in the data folder",
          CheckRegistry),
      Text("artifacts", &O::artifacts, "DIR|URL",
           "Where replicas with one registry keep their files: the path of a volume, or "
           "s3://BUCKET/PREFIX with the keys and endpoint in AWS's variables; the data folder then "
           "keeps copies; default: in the data folder",
           CheckArtifacts),
      Text("device", &O::device, "DEVICE", "cpu or cuda:N", CheckDevice),
      Text("dtype", &O::dtype, "DTYPE",
           "Compute type: float32, bfloat16, int8 (weights only, the rest bfloat16), or auto: "
           "settled at the data folder's first start",
           CheckDtype),
      Text("prompt_format", &O::prompt_format, "NAME|FILE",
           "chatml, llama3, plain or a JSON file; default: from the model's own template"),
      Number("threads", &O::threads, {0, 1024}, "Threads for tensors; 0: all cores"),
      Size("device_budget", &O::device_budget_bytes,
           "For loaded caches and adapters, such as 512MiB"),
      Size("host_budget", &O::host_budget_bytes,
           "Beside a GPU: for copies of caches and adapters in page-locked main memory"),
      Size("kv_budget", &O::kv_budget_bytes,
           "For keys and values of the questions and answers under way"),
      Text("unload_policy", &O::unload_policy, "POLICY",
           "What is unloaded first when the budget is full: greedy-dual-size (cheapest to load "
           "again per byte) or lru (least recently used)",
           CheckUnloadPolicy),
      Size("disk_budget", &O::disk_budget_bytes,
           "For all stored files, or for the copies of shared ones; 0: no limit"),
      Number("max_queue", &O::max_queue, {1, kMany},
             "Questions that may wait; batch ones are refused at three quarters of it"),
      Number("max_sequences", &O::max_sequences, {1, 4096}, "Questions decoded together"),
      Number("max_batch_tokens", &O::max_batch_tokens, {1, 65536},
             "Token rows of one engine step; longer questions take several"),
      Number("question_reserve", &O::question_reserve, {1, kMany},
             "Positions that ingestion leaves for question and answer"),
      Number("max_adapter_rank", &O::max_adapter_rank, {1, 4096}, "Highest rank of an adapter"),
      Number("drain_seconds", &O::drain_seconds, {0, 86400},
             "For open requests to end after SIGTERM"),
      Number("watchdog_seconds", &O::watchdog_seconds, {1, 86400},
             "Longest step of the engine before liveness fails"),
      Number("checkpoint_seconds", &O::checkpoint_seconds, {0, 86400},
             "Between two checkpoints of a training: what is trained again after a crash"),
      Level("log_level", "debug, info, warning or error"),
      Flag("recovery", &O::recovery,
           "Start without the model and without its memory, to list and delete what is stored"),
      Text("token_file", &O::token_file, "FILE",
           "Who may call and do what, a line each (see docmem token new); read again when it "
           "changes"),
      Text(
          "tls_cert", &O::tls_cert, "FILE",
          "The API's certificate and its chain, in PEM, for TLS; it, its key and the client CA are "
          "read again when they change"),
      Text("tls_key", &O::tls_key, "FILE", "The certificate's key, in PEM without password"),
      Text("tls_client_ca", &O::tls_client_ca, "FILE",
           "Let in only clients with a certificate of one of these authorities, in PEM; without a "
           "token file each has all rights"),
      Text("audit_log", &O::audit_log, "FILE",
           "Append a JSON line for each call that has ended; opened again on SIGHUP"),
      Flag("insecure", &O::insecure, "Allow plain text on another address than loopback"),
      Flag("no_auth", &O::no_auth, "Allow callers without credentials on such an address"),
      Text("addresses_file", &O::addresses_file, "FILE",
           "Write the bound addresses there, as JSON"),
  };
}

absl::Status CheckTogether(const ServerOptions& options) {
  if (options.model.empty() && !options.recovery) {
    return absl::InvalidArgumentError("--model is required");
  }
  if (options.data.empty()) return absl::InvalidArgumentError("--data is required");
  if (options.host_budget_bytes > 0 && options.device == "cpu") {
    return absl::InvalidArgumentError(
        "--host-budget goes with a GPU; on the CPU all main memory for caches and adapters is "
        "--device-budget");
  }
  return CheckAccess(options);
}

absl::StatusOr<uint64_t> ParseSize(const std::string& text) {
  constexpr std::pair<const char*, uint64_t> kUnits[] = {{"KiB", uint64_t{1} << 10},
                                                         {"MiB", uint64_t{1} << 20},
                                                         {"GiB", uint64_t{1} << 30},
                                                         {"TiB", uint64_t{1} << 40},
                                                         {"kB", 1000},
                                                         {"MB", 1'000'000},
                                                         {"GB", 1'000'000'000},
                                                         {"TB", 1'000'000'000'000},
                                                         {"", 1}};
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  uint64_t number = 0;
  if (absl::SimpleAtoi(text.substr(0, digits), &number)) {
    for (const auto& [unit, factor] : kUnits) {
      if (text.substr(digits) != unit) continue;
      if (number > std::numeric_limits<uint64_t>::max() / factor) break;
      return number * factor;
    }
  }
  return absl::InvalidArgumentError("must be a size such as 512MiB, 2GiB or a number of bytes");
}

}  // namespace docmem::server
