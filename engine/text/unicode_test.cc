#include "engine/text/unicode.h"

#include <gtest/gtest.h>

#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

TEST(Utf8Test, AcceptsTheFirstAndLastCharacterOfEveryLength) {
  for (const std::string& text :
       {std::string("\0", 1), std::string("\x7f"), std::string("\u0080"), std::string("\u07ff"),
        std::string("\u0800"), std::string("\ud7ff"), std::string("\ue000"), std::string("\uffff"),
        std::string("\U00010000"), std::string("\U0010ffff")}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
    EXPECT_EQ(NextUtf8(text).bytes, text.size());
  }
  EXPECT_TRUE(IsValidUtf8(""));
}

TEST(Utf8Test, NamesTheFirstInvalidByte) {
  const std::pair<const char*, size_t> cases[] = {
      {"\x80", 0},              // a continuation alone
      {"ab\xc0\xaf", 2},        // overlong in two bytes
      {"\xe0\x9f\xbf", 0},      // overlong in three
      {"\xf0\x8f\xbf\xbf", 0},  // overlong in four
      {"a\xed\xa0\x80", 1},     // a surrogate
      {"\xf4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xf5\x80\x80\x80", 0},  // no lead byte
      {"\u00e4\xe4\xb8", 2},    // cut
      {"\xe4\xb8x", 0},         // interrupted
      {"\xff", 0},
  };
  for (const auto& [text, position] : cases) EXPECT_EQ(FirstInvalidUtf8(text), position) << text;
}

TEST(Utf8Test, RequireUtf8NamesTheByteAndNotTheText) {
  try {
    RequireUtf8("secret\xff");
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_STREQ(error.what(), "the text isn't valid UTF-8 at byte 6");
  }
}

TEST(Utf8Test, TellsWhatCannotBecomeACharacterFromWhatStillCan) {
  using Kind = Utf8Step::Kind;
  EXPECT_EQ(NextUtf8("\xf0\x9f\x98").kind, Kind::kIncomplete);
  EXPECT_EQ(NextUtf8("\xf0\x9f\x98").bytes, 3u);
  EXPECT_EQ(NextUtf8("\xf0\x9f\x98x").kind, Kind::kInvalid);
  EXPECT_EQ(NextUtf8("\xf0\x9f\x98x").bytes, 3u);
  EXPECT_EQ(NextUtf8("\xed\xa0\x80").bytes, 1u);
  EXPECT_EQ(NextUtf8("\xed").kind, Kind::kIncomplete);
}

TEST(Utf8Test, EveryCodePointSurvivesTheRoundTrip) {
  for (uint32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    std::string text;
    AppendUtf8(point, &text);
    const Utf8Step step = NextUtf8(text);
    ASSERT_EQ(step.kind, Utf8Step::Kind::kValid) << point;
    ASSERT_EQ(step.code_point, point);
    ASSERT_EQ(step.bytes, text.size());
  }
}

TEST(WhiteSpaceTest, HasTheTwentyFiveMembersOfUnicodesProperty) {
  int count = 0;
  for (uint32_t point = 0; point < 0x110000; ++point) count += IsWhiteSpace(point);
  EXPECT_EQ(count, 25);
  EXPECT_TRUE(IsWhiteSpace(0x3000));
  EXPECT_FALSE(IsWhiteSpace(0x180E));
  EXPECT_FALSE(IsWhiteSpace(0x200B));
}

TEST(NfcTest, ComposesAndOrdersMarks) {
  EXPECT_EQ(NormalizeNfc("Tie\u0302\u0301ng Vie\u0323\u0302t"), "Ti\u1ebfng Vi\u1ec7t");
  EXPECT_EQ(NormalizeNfc("a\u0301\u0323"), "\u1ea1\u0301");
  EXPECT_EQ(NormalizeNfc("\u1112\u1161\u11ab"), "\ud55c");
  EXPECT_EQ(NormalizeNfc("\u212b"), "\u00c5");
}

TEST(NfcTest, KeepsExclusionsDecomposedAndCompatibilityCharactersAsTheyAre) {
  EXPECT_EQ(NormalizeNfc("\u0958"), "\u0915\u093c");
  EXPECT_EQ(NormalizeNfc("\u0344"), "\u0308\u0301");
  EXPECT_EQ(NormalizeNfc("\ufb01 \u00b2"), "\ufb01 \u00b2");
}

TEST(NfcTest, LeavesNormalTextAlone) {
  for (const char* text : {"", "plain", "\u00e4\u00f6\u00fc", "\u4e2d\u6587", "\U0001f600"}) {
    EXPECT_EQ(NormalizeNfc(text), text);
  }
}

TEST(NfcTest, RefusesInvalidUtf8) { EXPECT_THROW(NormalizeNfc("\xff"), Error); }

// With the library's own ordering of marks this takes an hour.
TEST(NfcTest, ALongRunOfMarksInTheWrongOrderIsSortedStably) {
  constexpr int kPairs = 200'000;
  std::string text = "x";
  std::string sorted = "x";
  for (int i = 0; i < kPairs; ++i) text += "\u0301\u0323";
  for (int i = 0; i < kPairs; ++i) sorted += "\u0323";
  for (int i = 0; i < kPairs; ++i) sorted += "\u0301";
  EXPECT_EQ(NormalizeNfc(text), sorted);
}

}  // namespace
}  // namespace docmem::engine
