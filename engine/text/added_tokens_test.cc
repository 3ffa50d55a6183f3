#include "engine/text/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace docmem::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Tokens in brackets, text as it is.
std::vector<std::string> Split(std::vector<AddedToken> tokens, std::string_view text) {
  std::vector<std::string> parts;
  for (const Tokenizer::Segment& segment : AddedTokens(std::move(tokens)).Split(text)) {
    const std::string part(segment.text);
    parts.push_back(segment.id ? std::to_string(*segment.id) + "[" + part + "]" : part);
  }
  return parts;
}

TEST(AddedTokensTest, CutsTheTextAtTokens) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "<a>"}};
  EXPECT_THAT(Split(tokens, "x<a>y"), ElementsAre("x", "1[<a>]", "y"));
  EXPECT_THAT(Split(tokens, "<a><a>"), ElementsAre("1[<a>]", "1[<a>]"));
  EXPECT_THAT(Split(tokens, "<a"), ElementsAre("<a"));
  EXPECT_THAT(Split(tokens, ""), IsEmpty());
  EXPECT_THAT(Split({}, "<a>"), ElementsAre("<a>"));
}

TEST(AddedTokensTest, OfTokensAtOnePlaceTheLongestCounts) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "<a"}, {.id = 2, .content = "<a>b"}};
  EXPECT_THAT(Split(tokens, "<a>b<a>c"), ElementsAre("2[<a>b]", "1[<a]", ">c"));
}

TEST(AddedTokensTest, StripsWhiteSpaceOnTheSideThatTheFlagNames) {
  const std::vector<AddedToken> left = {{.id = 1, .content = "<a>", .lstrip = true}};
  EXPECT_THAT(Split(left, "x \u3000<a> y"), ElementsAre("x", "1[ \u3000<a>]", " y"));
  const std::vector<AddedToken> right = {{.id = 1, .content = "<a>", .rstrip = true}};
  EXPECT_THAT(Split(right, "x <a>\n \u00a0y"), ElementsAre("x ", "1[<a>\n \u00a0]", "y"));
  EXPECT_THAT(Split(right, "<a> <a>  "), ElementsAre("1[<a> ]", "1[<a>  ]"));
}

TEST(AddedTokensTest, LeftStrippingTakesNothingFromATokenBefore) {
  const std::vector<AddedToken> both = {
      {.id = 1, .content = "<a>", .lstrip = true, .rstrip = true}};
  EXPECT_THAT(Split(both, "<a>  <a>"), ElementsAre("1[<a>  ]", "1[<a>]"));
}

TEST(AddedTokensTest, ASingleWordIsNotFoundInsideOfWords) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "cat", .single_word = true}};
  EXPECT_THAT(Split(tokens, "cat, cat"), ElementsAre("1[cat]", ", ", "1[cat]"));
  for (const char* text : {"cats", "\u00e4cat", "cat_", "cat1", "cat\u0301", "cat\u200d"}) {
    EXPECT_THAT(Split(tokens, text), ElementsAre(text));
  }
}

}  // namespace
}  // namespace docmem::engine
