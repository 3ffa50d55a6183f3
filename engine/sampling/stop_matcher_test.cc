#include "engine/sampling/stop_matcher.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

// The answer as seen when its text comes in pieces of the given size.
std::string Shown(const std::vector<std::string>& stops, std::string_view text, size_t piece,
                  bool* matched) {
  StopMatcher matcher(stops);
  std::string shown;
  for (size_t i = 0; i < text.size() && !matcher.matched(); i += piece) {
    shown += matcher.Push(text.substr(i, piece));
  }
  *matched = matcher.matched();
  return shown + matcher.Finish();
}

TEST(StopMatcherTest, FindsAStopStringHoweverTheTextIsCut) {
  for (size_t piece = 1; piece <= 20; ++piece) {
    bool matched = false;
    EXPECT_EQ(Shown({"\nQuestion:"}, "An answer\nQuest.\nQuestion: more", piece, &matched),
              "An answer\nQuest.");
    EXPECT_TRUE(matched);
  }
}

TEST(StopMatcherTest, ShowsEverythingWhenNothingMatches) {
  for (size_t piece = 1; piece <= 8; ++piece) {
    bool matched = true;
    EXPECT_EQ(Shown({"END", "ENDS"}, "Happy EN", piece, &matched), "Happy EN");
    EXPECT_FALSE(matched);
  }
}

TEST(StopMatcherTest, HoldsBackOnlyWhatMayStillBecomeAStopString) {
  StopMatcher matcher({"abab!"});
  EXPECT_EQ(matcher.Push("xaba"), "x");
  EXPECT_EQ(matcher.Push("bab"), "ab");
  EXPECT_EQ(matcher.Push("c"), "ababc");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcherTest, TheEarliestOfSeveralWins) {
  bool matched = false;
  EXPECT_EQ(Shown({"three", "two"}, "one two three", 100, &matched), "one ");
  EXPECT_TRUE(matched);
}

TEST(StopMatcherTest, AfterAMatchNothingMoreComes) {
  StopMatcher matcher({"x"});
  EXPECT_EQ(matcher.Push("ax"), "a");
  EXPECT_EQ(matcher.Push("b"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcherTest, WithoutStopStringsTextPassesThrough) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.Push("déjà"), "déjà");
}

TEST(StopMatcherTest, KeepsCharactersWhole) {
  StopMatcher matcher({"é!"});
  EXPECT_EQ(matcher.Push("aé"), "a");
  EXPECT_EQ(matcher.Push("è"), "éè");
}

TEST(StopMatcherTest, RefusesEmptyLongManyAndMalformedStopStrings) {
  for (const std::vector<std::string>& bad : {std::vector<std::string>{""},
                                              {std::string(257, 'a')},
                                              {"\xC3"},
                                              std::vector<std::string>(17, "x")}) {
    try {
      ValidateStopStrings(bad);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_EQ(error.field(), "stop_strings");
    }
  }
  EXPECT_NO_THROW(ValidateStopStrings({"a", "b"}));
}

}  // namespace
}  // namespace docmem::engine
