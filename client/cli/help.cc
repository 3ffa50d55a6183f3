#include "client/cli/help.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/parser.h"

namespace docmem::cli {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kIndent = 2;
constexpr size_t kWidestName = 26;

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string Wrap(const std::string& text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (const auto& word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    absl::StrAppend(&out, word);
    column += word.size();
  }
  return out;
}

std::string Paragraphs(const std::string& text) {
  std::string out;
  for (const auto& paragraph : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&out, Wrap(std::string(paragraph), 0), "\n");
  }
  return out;
}

std::string TwoColumns(const std::string& title, const Rows& rows) {
  if (rows.empty()) return "";
  size_t width = 0;
  for (const auto& [name, help] : rows) {
    if (name.size() <= kWidestName) width = std::max(width, name.size());
  }
  const size_t indent = kIndent + width + 2;
  std::string out = absl::StrCat("\n", title, ":\n");
  for (const auto& [name, help] : rows) {
    absl::StrAppend(&out, std::string(kIndent, ' '), name);
    if (name.size() > width) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
    } else {
      out.append(indent - kIndent - name.size(), ' ');
    }
    absl::StrAppend(&out, Wrap(help, indent), "\n");
  }
  return out;
}

std::string HelpText(const Argument& argument) {
  std::string text = argument.help;
  if (!argument.value.choices.empty()) {
    absl::StrAppend(&text, "; one of ", absl::StrJoin(argument.value.choices, ", "));
  }
  if (argument.value.repeated && argument.kind == Argument::Kind::kOption) {
    absl::StrAppend(&text, "; can be repeated");
  }
  return text;
}

Rows RowsOf(const Command& command, bool positional) {
  Rows rows;
  for (const Argument& argument : command.declared()) {
    if ((argument.kind == Argument::Kind::kPositional) != positional) continue;
    const bool has_value = argument.kind == Argument::Kind::kOption;
    rows.emplace_back(
        has_value ? absl::StrCat(argument.name, " ", argument.value.placeholder) : argument.name,
        HelpText(argument));
  }
  return rows;
}

std::string DefaultUsage(const Command& command) {
  if (!command.commands().empty()) return "COMMAND [options]";
  std::string usage;
  bool options = false;
  for (const Argument& argument : command.declared()) {
    if (argument.kind != Argument::Kind::kPositional) {
      options = true;
      continue;
    }
    const std::string name = absl::StrCat(argument.name, argument.value.repeated ? "..." : "");
    absl::StrAppend(&usage, argument.required ? name : absl::StrCat("[", name, "]"), " ");
  }
  if (options) absl::StrAppend(&usage, "[options]");
  return std::string(absl::StripTrailingAsciiWhitespace(usage));
}

}  // namespace

std::string HelpOf(const std::vector<Command*>& path) {
  const Command& command = *path.back();
  std::vector<std::string> usages = command.usages();
  if (usages.empty()) usages.push_back(DefaultUsage(command));
  std::string out;
  for (size_t i = 0; i < usages.size(); ++i) {
    absl::StrAppend(&out, i == 0 ? "Usage: " : "       ", PathName(path),
                    usages[i].empty() ? "" : " ", usages[i], "\n");
  }
  absl::StrAppend(&out, "\n", Paragraphs(absl::StrCat(command.summary(), ".")));
  if (!command.description().empty()) {
    absl::StrAppend(&out, "\n", Paragraphs(command.description()));
  }
  Rows commands;
  for (const auto& child : command.commands()) {
    commands.emplace_back(child->name(), child->summary());
  }
  absl::StrAppend(&out, TwoColumns("Commands", commands));
  absl::StrAppend(&out, TwoColumns("Arguments", RowsOf(command, true)));
  Rows options = RowsOf(command, false);
  if (path.size() > 1) {
    absl::StrAppend(&out, TwoColumns("Options", options));
    options = RowsOf(*path.front(), false);
  }
  options.emplace_back("-h, --help", "Show this help");
  if (path.size() == 1) options.emplace_back("--version", "Show the version");
  absl::StrAppend(&out, TwoColumns("Options of every command", options));
  return out;
}

}  // namespace docmem::cli
