#include "engine/text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace docmem::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Pieces(std::vector<const char*> patterns, std::string_view text) {
  std::vector<Regex> steps;
  for (const char* pattern : patterns) steps.push_back(Regex::Compile(pattern, ""));
  std::vector<std::string> pieces;
  PreTokenizer(std::move(steps)).Split(text, [&](std::string_view piece) {
    pieces.emplace_back(piece);
  });
  return pieces;
}

TEST(PreTokenizerTest, MatchesAndWhatLiesBetweenBecomePieces) {
  EXPECT_THAT(Pieces({R"(\p{N})"}, "ab12c"), ElementsAre("ab", "1", "2", "c"));
  EXPECT_THAT(Pieces({R"(\p{N})"}, "12"), ElementsAre("1", "2"));
  EXPECT_THAT(Pieces({R"(\p{N})"}, "abc"), ElementsAre("abc"));
  EXPECT_THAT(Pieces({R"(\p{N})"}, ""), IsEmpty());
}

TEST(PreTokenizerTest, WithoutStepsTheTextIsOnePiece) {
  EXPECT_THAT(Pieces({}, "a 1"), ElementsAre("a 1"));
}

TEST(PreTokenizerTest, EachStepCutsThePiecesOfTheOneBefore) {
  EXPECT_THAT(Pieces({R"(\p{N})", R"( ?\p{L}+)"}, "a b1 c"), ElementsAre("a", " b", "1", " c"));
}

TEST(PreTokenizerTest, AStepSeesNothingBeyondItsPiece) {
  EXPECT_THAT(Pieces({R"(\p{N})", R"(\s+(?!\S)|\s+)"}, "a  1"), ElementsAre("a", "  ", "1"));
  EXPECT_THAT(Pieces({R"(\s+(?!\S)|\s+)"}, "a  1"), ElementsAre("a", " ", " ", "1"));
}

TEST(PreTokenizerTest, EmptyMatchesCutBetweenWholeCharacters) {
  EXPECT_THAT(Pieces({"x*"}, "\u00e4xx\u4e2d"), ElementsAre("\u00e4", "xx", "\u4e2d"));
}

}  // namespace
}  // namespace docmem::engine
