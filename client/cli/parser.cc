#include "client/cli/parser.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace docmem::cli {
namespace {

constexpr int kMany = 1 << 20;

using Apps = std::map<const CLI::App*, Command*>;

CLI::callback_t Assign(const Argument& argument) {
  return [argument](const CLI::results_t& values) {
    for (const std::string& value : values) {
      const absl::Status status = argument.value.assign(value);
      if (!status.ok()) throw CLI::ValidationError(argument.name, std::string(status.message()));
    }
    return true;
  };
}

void DeclareArgument(const Argument& argument, CLI::App* app) {
  if (argument.kind == Argument::Kind::kFlag) {
    app->add_flag_callback(argument.name, [assign = argument.value.assign] {
      if (const absl::Status status = assign(""); !status.ok()) throw CLI::Error("", "");
    });
    return;
  }
  CLI::Option* option = app->add_option(argument.name, Assign(argument));
  option->type_size(1)->expected(1)->required(argument.required);
  if (argument.value.repeated) {
    option->expected(argument.required ? 1 : 0, kMany);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    option->allow_extra_args(argument.kind == Argument::Kind::kPositional);
    if (argument.kind == Argument::Kind::kOption) option->expected(1, kMany);
  }
}

void Declare(Command* command, CLI::App* app, Apps* apps) {
  (*apps)[app] = command;
  app->fallthrough();
  app->require_subcommand(0, 1);
  for (const Argument& argument : command->declared()) DeclareArgument(argument, app);
  for (const auto& child : command->commands()) {
    Declare(child.get(), app->add_subcommand(child->name()), apps);
  }
}

std::vector<Command*> Chosen(CLI::App* app, const Apps& apps) {
  std::vector<Command*> path;
  while (app != nullptr) {
    path.push_back(apps.at(app));
    const auto next = app->get_subcommands();
    app = next.empty() ? nullptr : next.front();
  }
  return path;
}

absl::Status WithHelp(const std::string& message, const std::vector<Command*>& path) {
  return UsageError(absl::StrCat(message, "; see ", PathName(path), " --help"));
}

absl::Status NeedsCommand(const std::vector<Command*>& path) {
  if (path.size() == 1) return WithHelp("a command is missing", path);
  std::vector<std::string> names;
  for (const auto& child : path.back()->commands()) names.push_back(child->name());
  return WithHelp(absl::StrCat("a command is missing: ", absl::StrJoin(names, ", ")), path);
}

}  // namespace

std::string PathName(const std::vector<Command*>& path) {
  return absl::StrJoin(
      path, " ", [](std::string* out, const Command* command) { out->append(command->name()); });
}

absl::StatusOr<Invocation> Parse(Command* root, std::vector<std::string> arguments) {
  CLI::App app("", root->name());
  Apps apps;
  app.set_help_flag("-h,--help");
  app.set_version_flag("--version", "");
  Declare(root, &app, &apps);
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return Invocation{Invocation::Kind::kHelp, Chosen(&app, apps)};
  } catch (const CLI::CallForVersion&) {
    return Invocation{Invocation::Kind::kVersion, Chosen(&app, apps)};
  } catch (const CLI::ExtrasError& error) {
    const std::vector<Command*> path = Chosen(&app, apps);
    const bool group = !path.back()->commands().empty();
    return WithHelp(absl::StrCat(group ? "no such command or option: " : "not expected: ",
                                 absl::StrJoin(app.remaining(true), " ")),
                    path);
  } catch (const CLI::ParseError& error) {
    return WithHelp(error.what(), Chosen(&app, apps));
  }
  std::vector<Command*> path = Chosen(&app, apps);
  if (!path.back()->commands().empty()) return NeedsCommand(path);
  return Invocation{Invocation::Kind::kRun, std::move(path)};
}

}  // namespace docmem::cli
