#include "engine/formats/digest.h"

#include <gtest/gtest.h>

namespace docmem::engine {
namespace {

TEST(DigestTest, Sha256AgreesWithTheStandardsExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(DigestTest, Xxh3AgreesWithTheReferenceProgram) {
  EXPECT_EQ(Xxh3Hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Xxh3Hex("abc"), "06b05ab6733a618578af5f94892f3950");
}

template <typename Hash>
class StreamingDigestTest : public testing::Test {};
using Hashes = testing::Types<Sha256, Xxh3>;
TYPED_TEST_SUITE(StreamingDigestTest, Hashes);

TYPED_TEST(StreamingDigestTest, PiecesGiveTheDigestOfTheWhole) {
  const std::string text(100'000, 'x');
  TypeParam whole;
  whole.Update(text);
  TypeParam pieces;
  for (size_t at = 0; at < text.size(); at += 333) {
    pieces.Update(std::string_view(text).substr(at, 333));
  }
  EXPECT_EQ(pieces.Hex(), whole.Hex());
}

TYPED_TEST(StreamingDigestTest, ReadingTheDigestDoesNotEndTheStream) {
  TypeParam hash;
  hash.Update("ab");
  hash.Hex();
  hash.Update("c");
  TypeParam once;
  once.Update("abc");
  EXPECT_EQ(hash.Hex(), once.Hex());
}

TYPED_TEST(StreamingDigestTest, EmptyUpdatesChangeNothing) {
  TypeParam hash;
  hash.Update(std::span<const std::byte>());
  hash.Update("");
  EXPECT_EQ(hash.Hex(), TypeParam().Hex());
}

}  // namespace
}  // namespace docmem::engine
