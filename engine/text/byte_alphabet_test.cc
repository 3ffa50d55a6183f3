#include "engine/text/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

TEST(ByteAlphabetTest, KnowsTheFamiliarSpellings) {
  EXPECT_EQ(SpellingToBytes("\u0120the"), " the");
  EXPECT_EQ(SpellingToBytes("\u010a"), "\n");
  EXPECT_EQ(SpellingToBytes("\u00c3\u00a4"), "\u00e4");
  EXPECT_EQ(SpellingToBytes(""), "");
}

TEST(ByteAlphabetTest, EveryByteHasACharacterOfItsOwnAndComesBack) {
  std::set<uint32_t> characters;
  for (int byte = 0; byte < 256; ++byte) {
    const uint32_t character = ByteToCharacter(static_cast<unsigned char>(byte));
    characters.insert(character);
    std::string spelling;
    AppendUtf8(character, &spelling);
    EXPECT_EQ(SpellingToBytes(spelling), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(characters.size(), 256u);
  EXPECT_EQ(*characters.rbegin(), 0x143u);
}

TEST(ByteAlphabetTest, OtherCharactersStandForNoByte) {
  EXPECT_EQ(SpellingToBytes("a b"), std::nullopt);
  EXPECT_EQ(SpellingToBytes("\u2581the"), std::nullopt);
  EXPECT_EQ(SpellingToBytes("\u00ad"), std::nullopt);
  EXPECT_EQ(SpellingToBytes("\u0144"), std::nullopt);
}

}  // namespace
}  // namespace docmem::engine
