#include "training/words.h"

#include <gtest/gtest.h>

namespace docmem::training {
namespace {

using Words = std::set<std::string>;

TEST(WordsTest, ContentWordsAreLongOrHaveADigit) {
  EXPECT_EQ(ContentWords("The GPL, of version 2, was DRAFTED in 1991."),
            (Words{"version", "2", "drafted", "1991"}));
  EXPECT_EQ(ContentWords("Größe"), (Words{"größe"}));
}

TEST(WordsTest, ShortWordsCountWhereThereAreNoOthers) {
  EXPECT_EQ(ContentWords("No, it is."), (Words{"no", "it", "is"}));
  EXPECT_TRUE(ContentWords(" ?! ").empty());
}

TEST(WordsTest, SharedPartIsThePartThatStandsInTheSource) {
  const Words source = ContentWords("The harbour museum owns forty ships.");
  EXPECT_DOUBLE_EQ(SharedPart(ContentWords("forty ships"), source), 1.0);
  EXPECT_DOUBLE_EQ(SharedPart(ContentWords("sixty ships"), source), 0.5);
  EXPECT_DOUBLE_EQ(SharedPart(ContentWords(""), source), 0.0);
}

TEST(WordsTest, NormalisedTextsDifferInMoreThanCaseSpaceAndPunctuation) {
  EXPECT_EQ(Normalised("Who  built it?"), Normalised("who built \"it\""));
  EXPECT_NE(Normalised("Who built it?"), Normalised("Who built them?"));
  EXPECT_EQ(Normalised("…"), "…");
  EXPECT_EQ(Normalised(" . "), "");
}

}  // namespace
}  // namespace docmem::training
