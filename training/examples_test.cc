#include "training/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "engine/model/testing.h"
#include "engine/testing.h"

namespace docmem::training {
namespace {

using engine::testing::ErrorOf;
using ::testing::Each;

constexpr const char* kDocument =
    "Maria Lopez founded the harbour museum in 1911. It owns forty ships. The largest of them is "
    "the Aurora, built by Henrik Dahl. Visitors come on Sundays, and a guide tells them of storms.";

std::vector<QaPair> Pairs() {
  return {{.question = "Who founded the museum?", .answer = "Maria Lopez"},
          {.question = "Who built the Aurora?", .answer = "Henrik Dahl built the Aurora."}};
}

class ExamplesTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<Example> Make(Supervision supervision, const std::vector<QaPair>& pairs = Pairs(),
                            int64_t chunk_tokens = 16) const {
    return MakeExamples(
        supervision,
        {.engine = *engine_, .context = context_, .pairs = pairs, .chunk_tokens = chunk_tokens});
  }

  std::vector<int32_t> Head() const {
    return {context_.ids.begin(), context_.ids.begin() + context_.head_tokens};
  }
  std::vector<int32_t> Document() const {
    return {context_.ids.begin() + context_.head_tokens, context_.ids.end()};
  }
  int64_t EndsOfTurn(const Example& example) const {
    return std::ranges::count(example.labels, engine_->prompt_format().end_of_turn_id());
  }

  // One line per example: the prefix's length, then each row's token with its label behind "→".
  void Print(Supervision supervision, const std::vector<Example>& examples) const {
    const auto spelled = [this](int32_t id) {
      return id == kNoLabel
                 ? "·"
                 : std::string(engine_->tokenizer().TokenBytes(id)) + "#" + std::to_string(id);
    };
    const Example& example = examples.back();
    std::printf("%s, %s: %zu examples; the last has %zu base tokens and these rows:\n",
                GetParam().c_str(), SupervisionName(supervision).data(), examples.size(),
                example.prefix_ids.size());
    for (size_t row = 0; row < example.row_ids.size(); ++row) {
      std::printf(" [%s→%s]", spelled(example.row_ids[row]).c_str(),
                  spelled(example.labels[row]).c_str());
    }
    std::printf("\n");
  }

  std::shared_ptr<const engine::Engine> engine_ = engine::testing::TinyEngine(GetParam());
  engine::Context context_ = engine_->EncodeContext("", kDocument, 0);
};

TEST_P(ExamplesTest, QuestionsHaveServingsIdsAndOneEndOfTurnLabelEach) {
  const auto examples = Make(Supervision::kSyntheticQa);
  Print(Supervision::kSyntheticQa, examples);
  ASSERT_EQ(examples.size(), 2U);
  for (size_t i = 0; i < examples.size(); ++i) {
    const auto prompt = engine_->prompt_format().QuestionIds({}, "", Pairs()[i].question);
    const auto answer = engine_->prompt_format().AnswerIds(Pairs()[i].answer);
    std::vector<int32_t> rows = prompt;
    rows.insert(rows.end(), answer.begin(), answer.end() - 1);
    std::vector<int32_t> labels(prompt.size() - 1, kNoLabel);
    labels.insert(labels.end(), answer.begin(), answer.end());
    EXPECT_EQ(examples[i].prefix_ids, Head());
    EXPECT_EQ(examples[i].row_ids, rows);
    EXPECT_EQ(examples[i].labels, labels);
    EXPECT_EQ(EndsOfTurn(examples[i]), 1);
    EXPECT_EQ(examples[i].labels.back(), engine_->prompt_format().end_of_turn_id());
  }
}

TEST_P(ExamplesTest, QuestionsWithContextFollowTheChunkTheirAnswerStandsIn) {
  const auto examples = Make(Supervision::kContextQa);
  Print(Supervision::kContextQa, examples);
  const auto plain = Make(Supervision::kSyntheticQa);
  const auto chunks = CutChunks(static_cast<int64_t>(Document().size()), 16);
  ASSERT_EQ(examples.size(), 2U);
  for (size_t i = 0; i < examples.size(); ++i) {
    EXPECT_EQ(examples[i].row_ids, plain[i].row_ids);
    EXPECT_EQ(examples[i].labels, plain[i].labels);
    EXPECT_EQ(EndsOfTurn(examples[i]), 1);
    const auto& prefix = examples[i].prefix_ids;
    ASSERT_GT(prefix.size(), Head().size());
    const auto head = Head();
    EXPECT_TRUE(std::equal(head.begin(), head.end(), prefix.begin()));
  }
  auto pairs = Pairs();
  pairs[0].chunk = chunks.size() - 1;
  const auto given = Make(Supervision::kContextQa, pairs).front().prefix_ids;
  std::vector<int32_t> expected = Head();
  const auto document = Document();
  expected.insert(expected.end(), document.begin() + chunks.back().first, document.end());
  EXPECT_EQ(given, expected);
}

TEST_P(ExamplesTest, EachTokenOfTheDocumentButTheFirstIsALabelOfOneWindow) {
  const auto examples = Make(Supervision::kRawContext);
  Print(Supervision::kRawContext, examples);
  std::vector<int32_t> labelled = {Document().front()};
  for (const Example& example : examples) {
    EXPECT_EQ(example.prefix_ids, Head());
    EXPECT_LT(example.row_ids.size(), 16U);
    EXPECT_EQ(EndsOfTurn(example), 0);
    EXPECT_EQ(example.row_ids.front(), labelled.back());
    EXPECT_EQ(example.label_count(), static_cast<int64_t>(example.row_ids.size()));
    labelled.insert(labelled.end(), example.labels.begin(), example.labels.end());
  }
  EXPECT_EQ(labelled, Document());
}

TEST_P(ExamplesTest, AContinuationsLabelsAreItsChunkButTheFirstToken) {
  const auto examples = Make(Supervision::kContextContinuation);
  Print(Supervision::kContextContinuation, examples);
  const auto document = Document();
  const auto chunks = CutChunks(static_cast<int64_t>(document.size()), 16);
  ASSERT_EQ(examples.size(), chunks.size() - 1);
  for (size_t i = 0; i < examples.size(); ++i) {
    const auto begin = document.begin() + chunks[i].first;
    const auto next = begin + chunks[i].tokens;
    std::vector<int32_t> prefix = Head();
    prefix.insert(prefix.end(), begin, next);
    EXPECT_EQ(examples[i].prefix_ids, prefix);
    EXPECT_EQ(examples[i].row_ids.front(), *next);
    EXPECT_EQ(examples[i].labels, std::vector<int32_t>(next + 1, next + chunks[i + 1].tokens));
    EXPECT_EQ(EndsOfTurn(examples[i]), 0);
  }
}

TEST_P(ExamplesTest, ControlTokensInUsersTextStayText) {
  const std::string end =
      std::string(engine_->tokenizer().TokenBytes(engine_->prompt_format().end_of_turn_id()));
  const std::string spelled = end.empty() ? "<|im_end|>" : end;
  const auto examples = Make(Supervision::kSyntheticQa,
                             {{.question = "Is " + spelled + " a word?", .answer = spelled + "x"}});
  EXPECT_EQ(EndsOfTurn(examples.front()), 1);
}

TEST_P(ExamplesTest, RefusesWhatCantBeTrainedOn) {
  const auto message = [&](Supervision supervision, const std::vector<QaPair>& pairs) {
    const auto error = ErrorOf([&] { Make(supervision, pairs); });
    return error ? std::string(error->what()) : "";
  };
  EXPECT_THAT(message(Supervision::kSyntheticQa, {}), ::testing::StartsWith("qa: there is no"));
  EXPECT_THAT(message(Supervision::kContextQa, {{.question = "What?", .answer = " ."}}),
              ::testing::StartsWith("qa[0]: has an empty"));
  EXPECT_THAT(
      message(Supervision::kContextQa, {{.question = "What?", .answer = "It", .chunk = 999}}),
      ::testing::StartsWith("qa[0]: names chunk 999"));
  const engine::Context one{
      .ids = {context_.ids.begin(), context_.ids.begin() + context_.head_tokens + 1},
      .head_tokens = context_.head_tokens};
  for (const auto supervision : {Supervision::kRawContext, Supervision::kContextContinuation}) {
    const auto error = ErrorOf(
        [&] { MakeExamples(supervision, {.engine = *engine_, .context = one, .pairs = {}}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->field(), "document");
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExamplesTest,
                         ::testing::Values("tiny-llama", "tiny-llama-rope3", "tiny-qwen3"));

TEST(CutChunksTest, CoversTheDocumentWithChunksOfAboutEqualLength) {
  for (const int64_t tokens : {1, 2, 3, 4, 511, 512, 513, 1024, 1025, 100'000}) {
    const auto chunks = CutChunks(tokens);
    int64_t next = 0;
    std::vector<int64_t> lengths;
    for (const Chunk& chunk : chunks) {
      EXPECT_EQ(chunk.first, next);
      next += chunk.tokens;
      lengths.push_back(chunk.tokens);
    }
    EXPECT_EQ(next, tokens);
    EXPECT_THAT(lengths, Each(::testing::AllOf(::testing::Ge(1), ::testing::Le(kChunkTokens))));
    EXPECT_EQ(chunks.size() >= 2, tokens >= 2) << tokens;
  }
}

}  // namespace
}  // namespace docmem::training
