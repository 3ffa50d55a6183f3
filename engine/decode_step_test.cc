#include "engine/decode_step.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/testing.h"

namespace docmem::engine {
namespace {

using testing::GoldenAdapter;
using testing::Ingest;
using testing::TinyEngine;

class BatchPlannerTest : public ::testing::Test {
 protected:
  void Add(const std::shared_ptr<const Cache>& cache,
           const std::shared_ptr<const Adapter>& adapter = nullptr, size_t prompt_tokens = 3) {
    const c10::InferenceMode inference;
    sequences_.push_back(std::make_unique<Sequence>(
        sequences_.size() + 1,
        SequenceRequest{.cache = cache,
                        .adapter = adapter,
                        .prompt_ids = std::vector<int32_t>(prompt_tokens, 7),
                        .max_tokens = 100},
        *engine_));
  }

  // The ids of the planned sequences, each as often as it has rows.
  std::vector<SequenceId> Rows(BatchPlanner& planner) {
    std::vector<SequenceId> ids;
    for (const BatchSlice& slice : planner.Plan(sequences_)) {
      EXPECT_EQ(slice.first_row, static_cast<int64_t>(ids.size()));
      ids.insert(ids.end(), static_cast<size_t>(slice.rows), slice.sequence->id());
    }
    return ids;
  }

  void Step(BatchPlanner& planner) {
    const c10::InferenceMode inference;
    const auto slices = planner.Plan(sequences_);
    const auto logits = RunBatch(engine_->transformer(), slices);
    for (size_t i = 0; i < slices.size(); ++i) {
      const at::Tensor always_nine = (at::arange(600) == 9).to(at::kFloat).expand_as(logits[i]);
      slices[i].sequence->Advance(slices[i].rows, always_nine);
    }
  }

  std::shared_ptr<const Cache> CacheOf(const std::string& document) const {
    return Ingest(*engine_, engine_->EncodeContext("", document, 0), {});
  }

  const std::shared_ptr<const Engine> engine_ = TinyEngine("tiny-llama");
  const std::shared_ptr<const Cache> first_ = CacheOf("One document.");
  const std::shared_ptr<const Cache> second_ = CacheOf("Another document.");
  const std::shared_ptr<const Adapter> adapter_ = GoldenAdapter(*engine_, "query-value");
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

TEST_F(BatchPlannerTest, NothingRunsWithoutSequences) {
  BatchPlanner planner({.max_rows_per_step = 8});
  EXPECT_TRUE(planner.Plan(sequences_).empty());
}

TEST_F(BatchPlannerTest, SequencesOnOneCacheAndAdapterLieSideBySide) {
  for (int i = 0; i < 2; ++i) {
    Add(first_, nullptr, 1);
    Add(second_, nullptr, 1);
    Add(first_, adapter_, 1);
  }
  BatchPlanner planner({.max_rows_per_step = 8});
  EXPECT_EQ(Rows(planner), (std::vector<SequenceId>{1, 4, 3, 6, 2, 5}));
}

TEST_F(BatchPlannerTest, PromptsAreCutToTheRowsOfAStep) {
  Add(first_);
  Add(first_);
  BatchPlanner planner({.max_rows_per_step = 5});
  EXPECT_EQ(Rows(planner), (std::vector<SequenceId>{1, 1, 1, 2, 2}));
}

TEST_F(BatchPlannerTest, TokensOfRunningAnswersComeBeforePrompts) {
  Add(first_);
  BatchPlanner planner({.max_rows_per_step = 3});
  Step(planner);
  Add(second_);
  EXPECT_EQ(Rows(planner), (std::vector<SequenceId>{1, 2, 2}));
  BatchPlanner keeping({.max_rows_per_step = 8, .max_prompt_rows_beside_answers = 1});
  EXPECT_EQ(Rows(keeping), (std::vector<SequenceId>{1, 2}));
}

TEST_F(BatchPlannerTest, WithMoreAnswersThanRowsAllHaveTheirTurn) {
  for (int i = 0; i < 5; ++i) {
    Add(first_, nullptr, 1);
  }
  BatchPlanner wide({.max_rows_per_step = 8});
  Step(wide);
  BatchPlanner planner({.max_rows_per_step = 2});
  std::multiset<SequenceId> turns;
  for (int step = 0; step < 5; ++step) {
    const auto rows = Rows(planner);
    turns.insert(rows.begin(), rows.end());
  }
  EXPECT_EQ(turns, (std::multiset<SequenceId>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
}

TEST_F(BatchPlannerTest, OnlyWantedRowsGetLogits) {
  Add(first_, nullptr, 3);
  Add(second_, nullptr, 6);
  BatchPlanner planner({.max_rows_per_step = 7});
  const c10::InferenceMode inference;
  const auto slices = planner.Plan(sequences_);
  const auto logits = RunBatch(engine_->transformer(), slices);
  ASSERT_EQ(logits.size(), 2U);
  EXPECT_EQ(logits[0].sizes(), at::IntArrayRef({1, 600}));
  EXPECT_EQ(logits[1].size(0), 0);
}

// What a step computes on a CUDA device, from torch's operators, and on the CPU from our kernels: a
// transformer takes the operators outside inference mode.
class StepByOperatorsTest : public ::testing::TestWithParam<Compression> {
 protected:
  // One step of questions of several lengths, some on one document, with and without an adapter.
  std::vector<at::Tensor> Logits() const {
    std::vector<std::unique_ptr<Sequence>> sequences;
    for (const auto& [cache, adapter, rows] : {std::tuple(first_, adapter_, 5),
                                               {first_, nullptr, 1},
                                               {second_, adapter_, 1},
                                               {second_, nullptr, 3},
                                               {first_, adapter_, 2}}) {
      sequences.push_back(std::make_unique<Sequence>(
          sequences.size() + 1,
          SequenceRequest{.cache = cache,
                          .adapter = adapter,
                          .prompt_ids = std::vector<int32_t>(static_cast<size_t>(rows), 7),
                          .answer_ids = {8, 9}},
          *engine_));
    }
    BatchPlanner planner({.max_rows_per_step = 100});
    return RunBatch(engine_->transformer(), planner.Plan(sequences));
  }

  std::shared_ptr<const Cache> CacheOf(const std::string& document) const {
    return Ingest(*engine_, engine_->EncodeContext("", document, 0), GetParam());
  }

  const std::shared_ptr<const Engine> engine_ = TinyEngine("tiny-llama");
  const std::shared_ptr<const Cache> first_ = CacheOf("The ferry leaves the island at six.");
  const std::shared_ptr<const Cache> second_ = CacheOf("In winter it stays in the harbour.");
  const std::shared_ptr<const Adapter> adapter_ = GoldenAdapter(*engine_, "all-modules");
};

TEST_P(StepByOperatorsTest, GivesTheLogitsOfTheKernels) {
  std::vector<at::Tensor> kernels;
  {
    const c10::InferenceMode inference;
    kernels = Logits();
  }
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> operators = Logits();
  ASSERT_EQ(operators.size(), kernels.size());
  for (size_t i = 0; i < operators.size(); ++i) {
    ASSERT_EQ(operators[i].sizes(), kernels[i].sizes());
    EXPECT_TRUE(at::allclose(operators[i], kernels[i], 1e-4, 1e-4)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Caches, StepByOperatorsTest,
    ::testing::Values(Compression{.ratio_ppm = 500'000},
                      Compression{.ratio_ppm = 500'000, .profile = Profile::kCompactorVllm},
                      Compression{.ratio_ppm = 500'000, .int8 = true},
                      Compression{
                          .ratio_ppm = 500'000, .profile = Profile::kCompactorVllm, .int8 = true},
                      Compression{.ratio_ppm = 1'000'000}),
    [](const auto& tested) {
      return std::string(tested.param.profile == Profile::kCompactor ? "Even" : "Ragged") +
             (tested.param.int8 ? "Int8" : "") + std::to_string(tested.param.ratio_ppm);
    });

}  // namespace
}  // namespace docmem::engine
