#include "engine/text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace docmem::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Ids = std::vector<int32_t>;

// Bytes are their own ids; the byte 'x' is missing.
BpeTables Tables(std::vector<BpeTables::Merge> merges) {
  BpeTables tables{.byte_ids = {}, .merges = std::move(merges), .whole_pieces = {}};
  for (int byte = 0; byte < 256; ++byte) tables.byte_ids[byte] = byte;
  tables.byte_ids['x'] = -1;
  return tables;
}

Ids Encode(const BpeModel& model, std::string_view piece) {
  BpeModel::Scratch scratch;
  Ids ids;
  model.Encode(piece, {}, &scratch, &ids);
  return ids;
}

// The definition, in quadratic time.
Ids EncodeSlowly(const BpeTables& tables, std::string_view piece) {
  Ids ids;
  for (const char c : piece) ids.push_back(tables.byte_ids[static_cast<unsigned char>(c)]);
  while (true) {
    size_t best_rank = tables.merges.size();
    size_t best_at = 0;
    for (size_t at = 0; at + 1 < ids.size(); ++at) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (tables.merges[rank].left == ids[at] && tables.merges[rank].right == ids[at + 1]) {
          best_rank = rank;
          best_at = at;
        }
      }
    }
    if (best_rank == tables.merges.size()) return ids;
    ids[best_at] = tables.merges[best_rank].merged;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best_at) + 1);
  }
}

TEST(BpeTest, TheLowestRankMergesFirst) {
  const BpeModel model(Tables({{'b', 'c', 300}, {'a', 'b', 301}, {'a', 300, 302}}));
  EXPECT_THAT(Encode(model, "abc"), ElementsAre(302));
  EXPECT_THAT(Encode(model, "abd"), ElementsAre(301, 'd'));
}

TEST(BpeTest, OfEqualPairsTheLeftmostMergesFirst) {
  const BpeModel model(Tables({{'a', 'a', 300}}));
  EXPECT_THAT(Encode(model, "aaa"), ElementsAre(300, 'a'));
  EXPECT_THAT(Encode(model, "aaaaa"), ElementsAre(300, 300, 'a'));
}

TEST(BpeTest, ABytesThatTheVocabularyLacksIsLeftOutBeforeMerging) {
  const BpeModel model(Tables({{'a', 'b', 300}}));
  EXPECT_THAT(Encode(model, "axb"), ElementsAre(300));
  EXPECT_THAT(Encode(model, "xx"), IsEmpty());
}

TEST(BpeTest, AWholePieceIsTakenWithoutMergingOnlyIfAllOfItMatches) {
  BpeTables tables = Tables({});
  tables.whole_pieces = {{"word", 400}};
  const BpeModel model(std::move(tables));
  EXPECT_THAT(Encode(model, "word"), ElementsAre(400));
  EXPECT_EQ(Encode(model, "words").size(), 5u);
}

TEST(BpeTest, OfTwoRanksForOnePairTheLastCounts) {
  const BpeModel model(Tables({{'a', 'b', 300}, {'b', 'c', 301}, {'a', 'b', 300}}));
  EXPECT_THAT(Encode(model, "abc"), ElementsAre('a', 301));
}

TEST(BpeTest, EqualsTheDefinitionOnRandomMergesAndText) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<BpeTables::Merge> merges;
    std::vector<int32_t> known = {'a', 'b', 'c'};
    for (int32_t id = 300; id < 325; ++id) {
      const auto pick = [&] { return known[random() % known.size()]; };
      const BpeTables::Merge merge = {pick(), pick(), id};
      const bool twice = std::any_of(merges.begin(), merges.end(), [&](const auto& other) {
        return other.left == merge.left && other.right == merge.right;
      });
      if (twice) continue;
      merges.push_back(merge);
      known.push_back(id);
    }
    std::shuffle(merges.begin(), merges.end(), random);
    const BpeTables tables = Tables(merges);
    const BpeModel model(tables);
    std::string piece;
    for (int i = 0; i < 60; ++i) piece += static_cast<char>('a' + random() % 3);
    EXPECT_EQ(Encode(model, piece), EncodeSlowly(tables, piece)) << piece;
  }
}

TEST(BpeTest, AMegabyteOfOneLetterCanBeCancelled) {
  const BpeModel model(Tables({{'a', 'a', 300}, {300, 300, 301}}));
  const std::string piece(1 << 20, 'a');
  BpeModel::Scratch scratch;
  Ids ids;
  int asked = 0;
  try {
    model.Encode(piece, [&] { return ++asked == 3; }, &scratch, &ids);
    FAIL() << "wasn't cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  }
  model.Encode(piece, {}, &scratch, &ids);
  EXPECT_EQ(ids, Ids(piece.size() / 4, 301));
}

}  // namespace
}  // namespace docmem::engine
