#include "adapter_store/lexical/ranking.h"

#include <cmath>
#include <limits>
#include <string>

#include "adapter_store/lexical/word_counts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using ::testing::ElementsAre;

std::vector<ChunkCount> Unpacked(std::string_view packed, uint32_t chunks) {
  std::vector<ChunkCount> counts;
  UnpackCounts(packed, chunks, [&](ChunkCount count) { counts.push_back(count); });
  return counts;
}

// Two texts of three words, each with one chunk: every length is the mean, so a word that occurs f
// times is worth f / (f + 2). Each word of the question is in one of two texts: idf = ln 2.
TEST(RankingTest, HandWorkedExample) {
  Ranking ranking({.documents = 2, .words = 6, .chunks = 2});
  const std::string twice = PackCounts({{0, 2}});
  const std::string once = PackCounts({{0, 1}});
  ranking.BeginTerm(1);
  ranking.Add({.document = 1, .words = 3, .in_chunks = twice});
  ranking.BeginTerm(1);
  ranking.Add({.document = 2, .words = 3, .in_chunks = once});
  const auto best = ranking.Best(5);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].document, 1);
  EXPECT_NEAR(best[0].score, 0.5 / 2, 1e-12);  // 2 / 4 of one of two equal terms
  EXPECT_NEAR(best[0].best_chunk, 0.25, 1e-12);
  EXPECT_NEAR(best[1].score, 1.0 / 3 / 2, 1e-12);
}

// Lengths 4 and 2 around a mean of 3: 1 / (1 + 2 (1/4 + 3/4 * 4/3)) and 1 / (1 + 2 (1/4 + 1/2)).
TEST(RankingTest, LongTextsNeedMore) {
  Ranking ranking({.documents = 2, .words = 6, .chunks = 2});
  const std::string once = PackCounts({{0, 1}});
  ranking.BeginTerm(2);
  ranking.Add({.document = 1, .words = 4, .in_chunks = once});
  ranking.Add({.document = 2, .words = 2, .in_chunks = once});
  const auto best = ranking.Best(5);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].document, 2);
  EXPECT_NEAR(best[0].score, 1 / 2.5, 1e-12);
  EXPECT_NEAR(best[1].score, 1 / 3.5, 1e-12);
}

// Two chunks of 64 words: chunk 1 has the word 2 times, chunk 0 once, the title once more.
TEST(RankingTest, TitleCountsInTheWholeAndInEachChunk) {
  Ranking ranking({.documents = 1, .words = 128, .chunks = 2});
  const std::string counts = PackCounts({{0, 1}, {1, 2}});
  ranking.BeginTerm(1);
  ranking.Add({.document = 1, .words = 128, .in_title = 1, .in_chunks = counts});
  const auto best = ranking.Best(1);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_NEAR(best[0].best_chunk, 3.0 / 5, 1e-12);
  EXPECT_NEAR(best[0].score, 0.4 * 4 / 6 + 0.6 * 3 / 5, 1e-12);
}

TEST(RankingTest, TermThatNobodyHasLowersAllScores) {
  Ranking ranking({.documents = 2, .words = 6, .chunks = 2});
  const std::string once = PackCounts({{0, 1}});
  ranking.BeginTerm(0);
  ranking.BeginTerm(1);
  ranking.Add({.document = 1, .words = 3, .in_chunks = once});
  EXPECT_NEAR(ranking.Best(1).at(0).score, 1.0 / 3 / 2, 1e-12);
}

TEST(RankingTest, EqualScoresAreInTheOrderOfTheIds) {
  Ranking ranking({.documents = 3, .words = 9, .chunks = 3});
  const std::string once = PackCounts({{0, 1}});
  ranking.BeginTerm(3);
  for (const int64_t document : {3, 1, 2}) {
    ranking.Add({.document = document, .words = 3, .in_chunks = once});
  }
  const auto best = ranking.Best(2);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].document, 1);
  EXPECT_EQ(best[1].document, 2);
}

TEST(RankingTest, NumbersOfADamagedRegistryGiveNumbers) {
  Ranking ranking({.documents = 0, .words = 0, .chunks = 0});
  ranking.BeginTerm(std::numeric_limits<uint64_t>::max());
  ranking.Add({.document = 1, .words = 0, .in_chunks = PackCounts({{7, 3}})});
  EXPECT_TRUE(ranking.Best(1).empty());
  ranking.BeginTerm(0);
  ranking.Add({.document = 1, .words = kMaxWords, .in_title = kMaxWords, .in_chunks = "~~~"});
  ranking.Add({.document = 1, .words = 1, .in_chunks = ""});
  for (const ScoredDocument& one : ranking.Best(1)) EXPECT_TRUE(std::isfinite(one.score));
}

TEST(WordCountsTest, CountsSurvivePacking) {
  const std::vector<ChunkCount> counts = {{0, 1}, {1, 31}, {33, 32}, {16383, kMaxWords}};
  EXPECT_EQ(Unpacked(PackCounts(counts), 16384), counts);
  EXPECT_EQ(PackCounts({{3, 1}}).size(), 2u);
}

TEST(WordCountsTest, DamagedCountsEndEarly) {
  const std::string packed = PackCounts({{0, 1}, {5, 2}});
  EXPECT_THAT(Unpacked(packed, 5), ElementsAre(ChunkCount{0, 1}));
  EXPECT_THAT(Unpacked(packed.substr(0, 3), 9), ElementsAre(ChunkCount{0, 1}));
  EXPECT_THAT(Unpacked(packed + "\x7F\x7F", 9), ElementsAre(ChunkCount{0, 1}, ChunkCount{5, 2}));
  EXPECT_THAT(Unpacked("00", 9), ElementsAre());
  EXPECT_THAT(Unpacked("ooooooooooooo", 9), ElementsAre());
}

TEST(WordCountsTest, TextsAreCutIntoEqualChunks) {
  EXPECT_EQ(ChunksOf(0), 1u);
  EXPECT_EQ(ChunksOf(95), 1u);
  EXPECT_EQ(ChunksOf(96), 2u);
  std::string text;
  for (int i = 0; i < 96; ++i) text += i == 47 || i == 48 || i == 95 ? " fox" : " hen";
  const TextWords words = CountText(text);
  EXPECT_EQ(words.words, 96u);
  EXPECT_THAT(Unpacked(words.in_chunks.at(TermsOf("fox").at(0)), 2),
              ElementsAre(ChunkCount{0, 1}, ChunkCount{1, 2}));
}

TEST(WordCountsTest, QuestionsTermsAreThoseOfTheTextOnceEach) {
  EXPECT_EQ(TermsOf("Foxes fox"), TermsOf("fox"));
  EXPECT_EQ(CountText("a fox").in_chunks.begin()->first, TermsOf("foxes").at(0));
  EXPECT_EQ(CountTitle("The Fox").begin()->first, TermsOf("fox").at(0));
}

TEST(WordCountsTest, WhatIsCountedIsBounded) {
  std::string text;
  for (uint32_t i = 0; i < kMaxWords; ++i) text += "a1 ";
  EXPECT_EQ(CountText(text + "tail").words, kMaxWords);
  EXPECT_EQ(CountText(text + "tail").in_chunks.size(), 1u);
  std::string question;
  for (size_t i = 0; i <= kMaxQuestionWords; ++i) question += " w" + std::to_string(i);
  EXPECT_EQ(TermsOf(question).size(), kMaxQuestionWords);
}

}  // namespace
}  // namespace docmem::store
