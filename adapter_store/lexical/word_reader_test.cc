#include "adapter_store/lexical/word_reader.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  WordReader().Read(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(WordReaderTest, FoldsCaseAndCutsEnglishEndings) {
  EXPECT_THAT(WordsOf("Kings, QUEENS; running (horses)!"),
              ElementsAre("king", "queen", "run", "hors"));
}

TEST(WordReaderTest, LeavesOutFunctionWords) {
  EXPECT_THAT(WordsOf("What's the name of the fox? Who is it?"), ElementsAre("name", "fox"));
}

TEST(WordReaderTest, ApostrophesBelongToAWordOnlyInsideIt) {
  EXPECT_THAT(WordsOf("'rose' King\u2019s o'clock dogs'"),
              ElementsAre("rose", "king", "o'clock", "dog"));
}

TEST(WordReaderTest, FoldsCompatibilityFormsAndInvisibleCharacters) {
  EXPECT_EQ(WordsOf("\uFF26\uFF4F\uFF58 E\u0301tude co\u00ADop"), WordsOf("fox \u00C9tude coop"));
}

TEST(WordReaderTest, ReadsEveryScript) {
  EXPECT_THAT(WordsOf("\u041C\u043E\u0441\u043A\u0432\u0430"),
              ElementsAre("\u043C\u043E\u0441\u043A\u0432\u0430"));
  EXPECT_THAT(WordsOf("\u0939\u093F\u0928\u094D\u0926\u0940"),  // with its vowel signs
              ElementsAre("\u0939\u093F\u0928\u094D\u0926\u0940"));
  EXPECT_THAT(WordsOf("\u05E9\u05DC\u05D5\u05DD 42"),
              ElementsAre("\u05E9\u05DC\u05D5\u05DD", "42"));
}

TEST(WordReaderTest, ScriptsWithoutSpacesGivePairsOfNeighbours) {
  EXPECT_THAT(WordsOf("\u6771\u4EAC\u90FD\u3002\u732B fox\u6771\u4EAC"),
              ElementsAre("\u6771\u4EAC", "\u4EAC\u90FD", "\u732B", "fox", "\u6771\u4EAC"));
}

TEST(WordReaderTest, BytesThatAreNotTextSeparateWords) {
  EXPECT_THAT(WordsOf(std::string_view("fox\0hen\xFF\xC3\x01owl\xED\xA0\x80", 14)),
              ElementsAre("fox", "hen", "owl"));
  EXPECT_THAT(WordsOf("\x07\x1B[31m _-_ \u2028"), ElementsAre("31m"));
  EXPECT_THAT(WordsOf(""), IsEmpty());
}

TEST(WordReaderTest, OnlyTheBeginningOfALongWordCounts) {
  const std::string megabyte(1 << 20, 'z');
  EXPECT_THAT(WordsOf(megabyte + " fox"), ElementsAre(std::string(64, 'z'), "fox"));
  std::string wide;
  while (wide.size() < 1 << 20) wide += "\u0416";
  EXPECT_EQ(WordsOf(wide).at(0).size(), 64u) << "a character was cut";
}

}  // namespace
}  // namespace docmem::store
