#include "client/cli/completion.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace docmem::cli {
namespace {

using Visit = std::function<void(const std::string& path, const Command& command)>;

void Walk(const std::string& path, const Command& command, const Visit& visit) {
  visit(path, command);
  for (const auto& child : command.commands()) {
    Walk(absl::StrCat(path, " ", child->name()), *child, visit);
  }
}

std::vector<std::string> Names(const Command& command) {
  std::vector<std::string> names;
  for (const auto& child : command.commands()) names.push_back(child->name());
  return names;
}

// The choices of its positionals, such as the shells of completion.
std::vector<std::string> PositionalChoices(const Command& command) {
  std::vector<std::string> choices;
  for (const Argument& argument : command.declared()) {
    if (argument.kind != Argument::Kind::kPositional) continue;
    choices.insert(choices.end(), argument.value.choices.begin(), argument.value.choices.end());
  }
  return choices;
}

void AppendOptions(const Command& command, std::vector<std::string>* words) {
  for (const Argument& argument : command.declared()) {
    if (argument.kind != Argument::Kind::kPositional) words->push_back(argument.name);
  }
}

std::string WordsCase(const Command& root) {
  std::string out;
  Walk("docmem", root, [&](const std::string& path, const Command& command) {
    std::vector<std::string> words = Names(command);
    for (std::string& choice : PositionalChoices(command)) words.push_back(std::move(choice));
    AppendOptions(command, &words);
    if (&command != &root) AppendOptions(root, &words);
    words.push_back("--help");
    absl::StrAppend(&out, "    \"", path, "\") words=\"", absl::StrJoin(words, " "), "\" ;;\n");
  });
  return out;
}

std::string ChoicesCase(const Command& root) {
  std::string out;
  Walk("docmem", root, [&](const std::string& path, const Command& command) {
    for (const Argument& argument : command.declared()) {
      if (argument.kind != Argument::Kind::kOption || argument.value.choices.empty()) continue;
      const std::string pattern = &command == &root
                                      ? absl::StrCat("*\" ", argument.name, "\"")
                                      : absl::StrCat("\"", path, " ", argument.name, "\"");
      absl::StrAppend(&out, "    ", pattern, ") words=\"",
                      absl::StrJoin(argument.value.choices, " "), "\" ;;\n");
    }
  });
  return out;
}

std::string PathsPattern(const Command& root) {
  std::vector<std::string> paths;
  Walk("docmem", root, [&](const std::string& path, const Command& command) {
    if (&command != &root) paths.push_back(absl::StrCat("\"", path, "\""));
  });
  return absl::StrJoin(paths, "|");
}

std::string FishQuote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string FishOption(const std::string& condition, const Argument& argument) {
  std::string line =
      absl::StrCat("complete -c docmem", condition, " -l ", absl::StripPrefix(argument.name, "--"),
                   " -d ", FishQuote(argument.help));
  if (argument.kind == Argument::Kind::kOption) {
    absl::StrAppend(&line, argument.value.choices.empty() ? " -r" : " -x");
    if (!argument.value.choices.empty()) {
      absl::StrAppend(&line, " -a ", FishQuote(absl::StrJoin(argument.value.choices, " ")));
    }
  }
  return absl::StrCat(line, "\n");
}

// True where the words so far contain all commands of the path, and none of `children`.
std::string FishCondition(const std::string& path, const std::vector<std::string>& children) {
  std::vector<std::string> parts;
  for (const auto& name : absl::StrSplit(path, ' ')) {
    if (name != "docmem") parts.push_back(absl::StrCat("__fish_seen_subcommand_from ", name));
  }
  if (!children.empty()) {
    parts.push_back(absl::StrCat("not __fish_seen_subcommand_from ", absl::StrJoin(children, " ")));
  }
  if (parts.empty()) return "";
  return absl::StrCat(" -n ", FishQuote(absl::StrJoin(parts, "; and ")));
}

}  // namespace

std::string BashCompletion(const Command& root) {
  return absl::StrCat(R"(# Completion of docmem for bash.
_docmem() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="" path=docmem words="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    prev="${COMP_WORDS[i]}"
    case "$path $prev" in
    )",
                      PathsPattern(root), R"() path="$path $prev" ;;
    esac
  done
  case "$path $prev" in
)",
                      ChoicesCase(root), R"(    *)
      case "$path" in
)",
                      WordsCase(root), R"(      esac ;;
  esac
  if [[ "$cur" != -* && "$words" == --* ]]; then words=""; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _docmem docmem
)");
}

std::string ZshCompletion(const Command& root) {
  return absl::StrCat("#compdef docmem\nautoload -U +X bashcompinit && bashcompinit\n",
                      BashCompletion(root));
}

std::string FishCompletion(const Command& root) {
  std::string out = "# Completion of docmem for fish.\n";
  Walk("docmem", root, [&](const std::string& path, const Command& command) {
    const std::vector<std::string> names = Names(command);
    for (const auto& child : command.commands()) {
      absl::StrAppend(&out, "complete -c docmem -f", FishCondition(path, names), " -a ",
                      child->name(), " -d ", FishQuote(child->summary()), "\n");
    }
    const std::vector<std::string> choices = PositionalChoices(command);
    if (!choices.empty()) {
      absl::StrAppend(&out, "complete -c docmem -f", FishCondition(path, {}), " -a ",
                      FishQuote(absl::StrJoin(choices, " ")), "\n");
    }
    for (const Argument& argument : command.declared()) {
      if (argument.kind == Argument::Kind::kPositional) continue;
      out += FishOption(FishCondition(path, {}), argument);
    }
  });
  return out;
}

}  // namespace docmem::cli
