#include "server/config.h"

#include <toml++/toml.h>
#include <CLI/CLI.hpp>

#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/config_settings.h"
#include "server/telemetry/version.h"

namespace docmem::server {
namespace {

struct Given {
  std::string text;
  std::string origin;
};
using GivenByKey = std::map<std::string, Given>;

absl::Status At(const std::string& origin, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", message));
}

// A file's value in the form of the command line; an error where its type isn't the setting's.
absl::StatusOr<std::string> TextOf(const toml::node& node, SettingKind kind) {
  if (kind == SettingKind::kText && node.is_string()) return node.as_string()->get();
  if (kind == SettingKind::kSize && node.is_string()) return node.as_string()->get();
  if (kind == SettingKind::kFlag && node.is_boolean()) {
    return std::string(node.as_boolean()->get() ? "true" : "false");
  }
  if ((kind == SettingKind::kNumber || kind == SettingKind::kSize) && node.is_integer()) {
    return absl::StrCat(node.as_integer()->get());
  }
  constexpr const char* kWanted[] = {"must be a string", "must be a whole number",
                                     "must be a size such as \"512MiB\" or a number of bytes",
                                     "must be true or false"};
  return absl::InvalidArgumentError(kWanted[static_cast<int>(kind)]);
}

absl::Status AddFile(const std::string& path, const std::vector<Setting>& settings,
                     GivenByKey* given) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    const auto line = error.source().begin.line;
    return At(line == 0 ? path : absl::StrCat(path, ":", line), std::string(error.description()));
  }
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const std::string origin = absl::StrCat(path, ":", node.source().begin.line);
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&](const Setting& s) { return s.key == name; });
    if (setting == settings.end()) return At(origin, absl::StrCat("unknown key ", name));
    absl::StatusOr<std::string> text = TextOf(node, setting->kind);
    if (!text.ok()) return At(origin, absl::StrCat(name, " ", text.status().message()));
    (*given)[name] = {*std::move(text), origin};
  }
  return absl::OkStatus();
}

// What the flags say, by key.
struct Flags {
  std::map<std::string, std::string> texts;
  std::string config;
  bool check = false;
  std::string print;
};

absl::StatusOr<Flags> ReadFlags(int argc, const char* const* argv,
                                const std::vector<Setting>& settings) {
  CLI::App app(
      "docmemd remembers documents for a language model and answers questions on them.\n"
      "Each setting is also a variable (--max-queue: DOCMEM_MAX_QUEUE) and a key of the\n"
      "configuration file (max_queue).",
      "docmemd");
  app.set_version_flag("--version", std::string("docmemd ") + kVersion);
  Flags flags;
  std::map<std::string, std::string> texts;
  std::map<std::string, CLI::Option*> options;
  const ServerOptions defaults;
  for (const Setting& setting : settings) {
    const bool is_flag = setting.kind == SettingKind::kFlag;
    const std::string name = setting.flag() + (is_flag ? "{true}" : "");
    CLI::Option* option = is_flag ? app.add_flag(name, texts[setting.key], setting.help)
                                  : app.add_option(name, texts[setting.key], setting.help);
    if (!is_flag) option->type_name(setting.placeholder)->default_str(setting.value(defaults));
    options[setting.key] = option;
  }
  app.add_option("--config", flags.config, "Configuration file (TOML)")->type_name("FILE");
  app.add_flag("--check-config", flags.check, "Print each setting with its origin and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    flags.print = success.get_name() == "CallForVersion" ? app.version() + "\n" : app.help();
    return flags;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(error.what(), "; see docmemd --help"));
  }
  for (const auto& [key, option] : options) {
    if (option->count() > 0) flags.texts[key] = texts[key];
  }
  return flags;
}

std::string Print(const std::vector<Setting>& settings, const GivenByKey& given,
                  const ServerOptions& options) {
  std::string text;
  for (const Setting& setting : settings) {
    const auto it = given.find(setting.key);
    absl::StrAppend(&text, setting.key, " = ", setting.value(options), "  # ",
                    it == given.end() ? "default" : it->second.origin, "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<Invocation> ReadConfig(int argc, const char* const* argv,
                                      const Environment& environment) {
  const std::vector<Setting> settings = AllSettings();
  absl::StatusOr<Flags> flags = ReadFlags(argc, argv, settings);
  if (!flags.ok()) return flags.status();
  Invocation invocation;
  if (!flags->print.empty()) {
    invocation.print = flags->print;
    return invocation;
  }

  GivenByKey given;
  const char* config = environment("DOCMEM_CONFIG");
  if (flags->config.empty() && config != nullptr) flags->config = config;
  if (!flags->config.empty()) {
    if (absl::Status status = AddFile(flags->config, settings, &given); !status.ok()) return status;
  }
  for (const Setting& setting : settings) {
    if (const char* value = environment(setting.variable().c_str())) {
      given[setting.key] = {value, setting.variable()};
    }
    if (const auto it = flags->texts.find(setting.key); it != flags->texts.end()) {
      given[setting.key] = {it->second, setting.flag()};
    }
    const auto it = given.find(setting.key);
    if (it == given.end()) continue;
    const absl::Status status = setting.assign(invocation.options, it->second.text);
    if (!status.ok()) {
      return At(it->second.origin, absl::StrCat(setting.key, " ", status.message(), "; it is \"",
                                                it->second.text, "\""));
    }
  }
  if (absl::Status status = CheckTogether(invocation.options); !status.ok()) return status;
  if (flags->check) invocation.print = Print(settings, given, invocation.options);
  return invocation;
}

bool SplitAddress(const std::string& address, std::string* host, int* port) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  *host = address.substr(0, colon);
  if (host->front() == '[' && host->back() == ']') {
    *host = host->substr(1, host->size() - 2);
  } else if (host->find(':') != std::string::npos) {
    return false;
  }
  return !host->empty() && absl::SimpleAtoi(address.substr(colon + 1), port) && *port >= 0 &&
         *port <= 65535;
}

}  // namespace docmem::server
