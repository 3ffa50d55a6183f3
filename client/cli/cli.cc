#include "client/cli/cli.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/help.h"
#include "client/cli/local_file.h"
#include "client/cli/parser.h"
#include "client/cli/report.h"
#include "client/cli/root.h"
#include "client/cli/session.h"
#include "client/connection.h"

namespace docmem::cli {
namespace {

constexpr uint64_t kMaxSecretFileBytes = 65'536;

// Also for errors that keep the arguments from being parsed.
bool AsksForJson(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--output=json") return true;
    if (arguments[i] == "--output" && i + 1 < arguments.size() && arguments[i + 1] == "json") {
      return true;
    }
  }
  return false;
}

// `given`, else the variable's value, else empty.
std::string GivenOr(const std::string& given, const char* variable,
                    const Environment& environment) {
  if (!given.empty()) return given;
  const char* value = environment.variable(variable);
  return value == nullptr ? "" : value;
}

absl::Status AddToken(const RootCommand& root, const Environment& environment,
                      client::ConnectionOptions* options) {
  if (root.token_file().empty()) {
    options->token = GivenOr("", "DOCMEM_TOKEN", environment);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> content = ReadLocalFile(root.token_file(), kMaxSecretFileBytes);
  if (content.ok()) options->token = std::string(absl::StripAsciiWhitespace(*content));
  return content.status();
}

absl::Status AddTls(const RootCommand::Tls& given, const Environment& environment,
                    client::ConnectionOptions* options) {
  const std::string ca = GivenOr(given.ca, "DOCMEM_TLS_CA", environment);
  const bool wanted = given.wanted || !ca.empty() || !given.certificate.empty() ||
                      !given.key.empty() || !given.server_name.empty();
  if (!wanted) return absl::OkStatus();
  client::TlsOptions& tls = options->tls.emplace();
  tls.server_name = given.server_name;
  const std::pair<const std::string*, std::string*> files[] = {
      {&ca, &tls.ca}, {&given.certificate, &tls.certificate}, {&given.key, &tls.key}};
  for (const auto& [path, content] : files) {
    if (path->empty()) continue;
    absl::StatusOr<std::string> read = ReadLocalFile(*path, kMaxSecretFileBytes);
    if (!read.ok()) return read.status();
    *content = *std::move(read);
  }
  return absl::OkStatus();
}

absl::StatusOr<client::ConnectionOptions> ConnectionOptionsOf(const RootCommand& root,
                                                              const Command& command,
                                                              const Environment& environment) {
  client::ConnectionOptions options;
  const std::string address = GivenOr(root.address(), "DOCMEM_ADDRESS", environment);
  if (!address.empty()) options.address = address;
  if (!command.NeedsCredentials()) return options;
  options.insecure = root.insecure();
  if (absl::Status status = AddToken(root, environment, &options); !status.ok()) return status;
  if (absl::Status status = AddTls(root.tls(), environment, &options); !status.ok()) return status;
  return options;
}

absl::StatusOr<std::shared_ptr<const client::Connection>> Connect(const RootCommand& root,
                                                                  const Command& command,
                                                                  const Environment& environment) {
  absl::StatusOr<client::ConnectionOptions> options =
      ConnectionOptionsOf(root, command, environment);
  if (!options.ok()) return options.status();
  auto connection = client::Connection::Open(*options);
  if (!connection.ok()) {
    return UsageError(absl::StrCat(connection.status().message(),
                                   "; see --address, --token-file, --tls-… and --insecure"));
  }
  return connection;
}

absl::Status RunCommand(const RootCommand& root, Command* command, const Environment& environment) {
  if (root.timeout_seconds() < 0) return UsageError("--timeout must be above 0");
  Session::Settings settings{.json = root.json()};
  if (root.timeout_seconds() > 0) settings.timeout = absl::Seconds(root.timeout_seconds());
  std::shared_ptr<const client::Connection> connection;
  if (command->NeedsConnection()) {
    auto opened = Connect(root, *command, environment);
    if (!opened.ok()) return opened.status();
    connection = *std::move(opened);
  }
  Session session(&environment, settings, std::move(connection));
  absl::Status status = command->Run(session);
  environment.out->flush();
  if (status.ok() && !*environment.out) {
    return absl::DataLossError("the output couldn't be written completely");
  }
  return status;
}

int Report(const absl::Status& status, bool json, const Environment& environment) {
  if (status.ok()) return kDone;
  if (environment.stop.stop_requested()) {
    if (environment.err_is_terminal) *environment.err << '\n';
    return kStopped;
  }
  if (json) {
    PrintErrorJson(status, *environment.err);
  } else {
    PrintError(status, *environment.err);
  }
  return IsUsageError(status) ? kUsage : kFailed;
}

}  // namespace

int Run(const std::vector<std::string>& arguments, const Environment& environment) {
  RootCommand root;
  const bool json = AsksForJson(arguments);
  const absl::StatusOr<Invocation> invocation = Parse(&root, arguments);
  if (!invocation.ok()) return Report(invocation.status(), json, environment);
  if (invocation->kind == Invocation::Kind::kHelp) {
    *environment.out << HelpOf(invocation->path) << std::flush;
    return kDone;
  }
  if (invocation->kind == Invocation::Kind::kVersion) {
    *environment.out << "docmem " DOCMEM_VERSION << std::endl;
    return kDone;
  }
  return Report(RunCommand(root, invocation->path.back(), environment), root.json(), environment);
}

}  // namespace docmem::cli
