#include "engine/text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

using testing::ElementsAre;

std::vector<std::string> Matches(const Regex& regex, std::string_view text) {
  Regex::Matcher matcher(regex);
  std::vector<std::string> matches;
  size_t from = 0;
  while (const auto match = matcher.Find(text, from)) {
    matches.emplace_back(text.substr(match->begin, match->end - match->begin));
    from = match->end;
  }
  return matches;
}

ErrorKind KindOf(const char* pattern) {
  try {
    Regex::Compile(pattern, "the.field");
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "the.field");
    return error.kind();
  }
  ADD_FAILURE() << pattern << " was accepted";
  return ErrorKind::kInternal;
}

TEST(RegexTest, KnowsUnicodeProperties) {
  const Regex letters = Regex::Compile(R"(\p{L}+|\p{N})", "");
  EXPECT_THAT(Matches(letters, "\u00e4b \u4e2d1\u0663!"),
              ElementsAre("\u00e4b", "\u4e2d", "1", "\u0663"));
}

TEST(RegexTest, WhiteSpaceIsUnicodesInsideAndOutsideOfClasses) {
  EXPECT_THAT(Matches(Regex::Compile(R"(\s)", ""), "\u180e\u3000\u200b\u0085"),
              ElementsAre("\u3000", "\u0085"));
  EXPECT_THAT(Matches(Regex::Compile(R"([^\s]+)", ""), "\u180e\u3000\u200b"),
              ElementsAre("\u180e", "\u200b"));
  EXPECT_THAT(Matches(Regex::Compile(R"(\S)", ""), "\u180e\u3000x"), ElementsAre("\u180e", "x"));
  EXPECT_THAT(Matches(Regex::Compile(R"([\S])", ""), "\u180e \u3000"), ElementsAre("\u180e"));
}

TEST(RegexTest, LookaheadSeesTheEndOfTheText) {
  const Regex spaces = Regex::Compile(R"(\s+(?!\S)|\s+)", "");
  EXPECT_THAT(Matches(spaces, "a   b  "), ElementsAre("  ", " ", "  "));
}

TEST(RegexTest, CaseInsensitiveGroupsFoldUnicode) {
  EXPECT_THAT(Matches(Regex::Compile(R"((?i:'s|'ll))", ""), "'S'LL'\u017f"),
              ElementsAre("'S", "'LL", "'\u017f"));
}

TEST(RegexTest, RefusesSyntaxThatTheLibrariesReadDifferently) {
  for (const char* pattern :
       {"^a",         "a$",           R"(\w)",    R"(\b)",       R"(\h)",  R"(\v)",  R"(\R)",
        R"(\X)",      R"(\1)",        R"(\Qa\E)", "[[:alpha:]]", "[a[b]]", "[a&&b]", "[]a]",
        "(?m:a)",     "(?<name>a)",   "(?P<n>a)", "(*UTF)",      "a{2}+",  "a{2}?",  "a{,2}",
        R"(\p{Han})", R"(\p{Alpha})", R"(\pL)",   "a\\"}) {
    EXPECT_EQ(KindOf(pattern), ErrorKind::kUnimplemented) << pattern;
  }
}

TEST(RegexTest, RefusesPatternsThatDoNotCompile) {
  for (const char* pattern : {"(", "[a", "a**", R"(\p{Zx})", "\xff"}) {
    try {
      Regex::Compile(pattern, "the.field");
      ADD_FAILURE() << pattern << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << pattern;
    }
  }
  EXPECT_THROW(Regex::Compile(std::string(100'000, 'a'), ""), Error);
}

TEST(RegexTest, LiteralsMatchThemselvesOnly) {
  EXPECT_THAT(Matches(Regex::Literal("a.b*(\n\u00e4", ""), "a.b*(\n\u00e4axb*(\n\u00e4"),
              ElementsAre("a.b*(\n\u00e4"));
}

TEST(RegexTest, APatternThatBacktracksWithoutEndIsStopped) {
  const Regex regex = Regex::Compile(R"((?:a+)+[bc])", "the.field");
  Regex::Matcher matcher(regex);
  try {
    matcher.Find(std::string(2000, 'a'), 0);
    FAIL() << "finished";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
    EXPECT_EQ(error.field(), "the.field");
  }
}

TEST(RegexTest, ADeepStackIsNoReasonToFail) {
  const Regex regex = Regex::Compile("(?:(?:ab|cd)(?:e|f)?)+", "");
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "abecd";
  EXPECT_THAT(Matches(regex, text), ElementsAre(text));
}

}  // namespace
}  // namespace docmem::engine
