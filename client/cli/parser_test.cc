#include "client/cli/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_split.h"
#include "client/cli/completion.h"
#include "client/cli/help.h"
#include "client/cli/names.h"
#include "client/cli/root.h"
#include "docmem/v1/common.pb.h"

namespace docmem::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A command with one argument of each kind.
class SampleCommand final : public Command {
 public:
  SampleCommand() : Command("sample", "Shows every kind of argument") {
    arguments().Positional(Text("ID", &id), "The document");
    arguments().Positional(Text("QUESTION", &question), "What is asked").required = false;
    arguments().Option("--number", Number("N", &number), "A number");
    arguments().Option("--mode", OneOf("MODE", &mode), "The mode");
    arguments().Option("--stop", Texts("TEXT", &stop), "A stop text");
    arguments().Flag("--flag", &flag, "A flag");
    arguments().Switch("--on", &choice, true, "On");
    arguments().Switch("--off", &choice, false, "Off");
  }
  absl::Status Run(Session&) override { return absl::OkStatus(); }

  std::string id;
  std::string question;
  uint32_t number = 0;
  v1::Mode mode = v1::MODE_UNSPECIFIED;
  std::vector<std::string> stop;
  bool flag = false;
  std::optional<bool> choice;
};

class ParserTest : public ::testing::Test {
 protected:
  ParserTest() : root_("docmem", "Test") {
    auto sample = std::make_unique<SampleCommand>();
    sample_ = sample.get();
    auto group = std::make_unique<CommandGroup>("group", "A group");
    group->Add(std::make_unique<CommandGroup>("status", "An inner one"));
    root_.Add(std::move(sample));
    root_.Add(std::move(group));
    root_.Add(std::make_unique<CommandGroup>("status", "Another command"));
  }

  absl::Status Try(const std::vector<std::string>& arguments) {
    const absl::StatusOr<Invocation> invocation = Parse(&root_, arguments);
    if (invocation.ok()) path_ = PathName(invocation->path);
    return invocation.status();
  }

  void ExpectUsageError(const std::vector<std::string>& arguments, const std::string& message) {
    const absl::Status status = Try(arguments);
    EXPECT_TRUE(IsUsageError(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  CommandGroup root_;
  SampleCommand* sample_ = nullptr;
  std::string path_;
};

TEST_F(ParserTest, ArgumentsReachTheirTargets) {
  ASSERT_TRUE(Try({"sample", "d1", "--number", "7", "why?", "--mode=base-kv-adapter-decode",
                   "--stop", "a", "--stop", "b", "--flag", "--off"})
                  .ok());
  EXPECT_EQ(path_, "docmem sample");
  EXPECT_EQ(sample_->id, "d1");
  EXPECT_EQ(sample_->question, "why?");
  EXPECT_EQ(sample_->number, 7U);
  EXPECT_EQ(sample_->mode, v1::MODE_BASE_KV_ADAPTER_DECODE);
  EXPECT_THAT(sample_->stop, ElementsAre("a", "b"));
  EXPECT_TRUE(sample_->flag);
  EXPECT_EQ(sample_->choice, false);
}

TEST_F(ParserTest, ModesAreTakenAsTheContractSpellsThem) {
  for (const char* mode : {"BASE", "base", "MODE_BASE"}) {
    ASSERT_TRUE(Try({"sample", "d1", "--mode", mode}).ok()) << mode;
    EXPECT_EQ(sample_->mode, v1::MODE_BASE);
  }
  ExpectUsageError({"sample", "d1", "--mode", "unspecified"}, "isn't one of base,");
}

TEST_F(ParserTest, ADocumentMayHaveACommandsName) {
  ASSERT_TRUE(Try({"sample", "status", "group"}).ok());
  EXPECT_EQ(path_, "docmem sample");
  EXPECT_EQ(sample_->id, "status");
  EXPECT_EQ(sample_->question, "group");
}

TEST_F(ParserTest, AQuestionMayBeginWithADashOrBeEmpty) {
  ASSERT_TRUE(Try({"sample", "--number", "3", "--", "d1", "--flag"}).ok());
  EXPECT_EQ(sample_->question, "--flag");
  EXPECT_FALSE(sample_->flag);
  ASSERT_TRUE(Try({"sample", "d1", ""}).ok());
  EXPECT_EQ(sample_->question, "");
}

TEST_F(ParserTest, WrongUsageSaysWhatIsWrong) {
  ExpectUsageError({}, "a command is missing; see docmem --help");
  ExpectUsageError({"group"}, "a command is missing: status; see docmem group --help");
  ExpectUsageError({"nonsense"}, "no such command or option: nonsense; see docmem --help");
  ExpectUsageError({"sample"}, "ID is required");
  ExpectUsageError({"sample", "a", "b", "c"}, "not expected: c; see docmem sample --help");
  ExpectUsageError({"sample", "a", "--nonsense"}, "not expected: --nonsense");
  ExpectUsageError({"sample", "a", "--number"}, "--number");
  ExpectUsageError({"sample", "a", "--number", "-1"}, "\"-1\" isn't a whole number from 0 to");
  ExpectUsageError({"sample", "a", "--number", "4294967296"}, "isn't a whole number");
  ExpectUsageError({"sample", "a", "--number", "1", "--number", "2"}, "--number");
  ExpectUsageError({"sample", "a", "--number", "1.5"}, "isn't a whole number");
  ExpectUsageError({"sample", "\xff"}, "isn't valid UTF-8");
}

TEST_F(ParserTest, HelpNeedsNothingElse) {
  const auto invocation = Parse(&root_, {"sample", "--help"});
  ASSERT_TRUE(invocation.ok());
  EXPECT_EQ(invocation->kind, Invocation::Kind::kHelp);
  const std::string help = HelpOf(invocation->path);
  EXPECT_THAT(help, HasSubstr("Usage: docmem sample ID [QUESTION] [options]\n"));
  EXPECT_THAT(help, HasSubstr("--mode MODE"));
  EXPECT_THAT(help, HasSubstr("base-kv-adapter-decode"));
  EXPECT_THAT(help, HasSubstr("can be repeated"));
}

void ForEachPath(Command* command, std::vector<Command*> path,
                 const std::function<void(const std::vector<Command*>&)>& each) {
  path.push_back(command);
  each(path);
  for (const auto& child : command->commands()) ForEachPath(child.get(), path, each);
}

TEST(Help, EveryCommandsHelpFitsATerminal) {
  RootCommand root;
  ForEachPath(&root, {}, [](const std::vector<Command*>& path) {
    const std::string help = HelpOf(path);
    EXPECT_THAT(help, HasSubstr("Usage: " + PathName(path)));
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(help, '\n'))) {
      EXPECT_LE(line.size(), 80U) << PathName(path) << ": " << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << PathName(path) << ": " << line;
    }
    EXPECT_NE(path.back()->summary().back(), '.') << PathName(path);
  });
}

// What bash offers after `line`, whose last word is being typed.
std::vector<std::string> Complete(const std::string& script, const std::string& line) {
  const std::string path = ::testing::TempDir() + "docmem_completion_test.bash";
  std::ofstream(path) << script << "COMP_WORDS=(" << line
                      << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_docmem\n"
                         "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
  FILE* pipe = popen(("bash " + path).c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
  EXPECT_EQ(pclose(pipe), 0);
  std::remove(path.c_str());
  return absl::StrSplit(output, '\n', absl::SkipEmpty());
}

TEST(Completion, BashCompletesCommandsOptionsAndChoices) {
  const RootCommand root;
  const std::string script = BashCompletion(root);
  EXPECT_THAT(Complete(script, "docmem a"), ElementsAre("ask", "adapter"));
  EXPECT_THAT(Complete(script, "docmem cache b"), ElementsAre("build"));
  EXPECT_THAT(Complete(script, "docmem ask --mo"), ElementsAre("--mode"));
  EXPECT_THAT(Complete(script, "docmem ask d1 --mode base-k"),
              ElementsAre("base-kv-adapter-decode"));
  EXPECT_THAT(Complete(script, "docmem list --output j"), ElementsAre("json"));
  EXPECT_THAT(Complete(script, "docmem completion z"), ElementsAre("zsh"));
  EXPECT_THAT(Complete(script, "docmem ask status --ti"), ElementsAre("--timeout"));
}

TEST(Completion, EveryShellKnowsEveryCommand) {
  RootCommand root;
  const std::string zsh = ZshCompletion(root);
  const std::string fish = FishCompletion(root);
  EXPECT_EQ(zsh.rfind("#compdef docmem\n", 0), 0U);
  ForEachPath(&root, {}, [&](const std::vector<Command*>& path) {
    EXPECT_THAT(zsh, HasSubstr("\"" + PathName(path) + "\""));
    if (path.size() == 1) return;
    EXPECT_THAT(fish, HasSubstr(" -a " + path.back()->name() + " "));
  });
}

}  // namespace
}  // namespace docmem::cli
