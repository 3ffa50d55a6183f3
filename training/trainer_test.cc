#include "training/trainer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "engine/model/testing.h"
#include "engine/testing.h"
#include "training/testing.h"

namespace docmem::training {
namespace {

using engine::testing::ErrorOf;
using testing::RunUntil;
using testing::SomeExamples;

class TrainerTest : public ::testing::Test {
 protected:
  Trainer Make(const TrainingOptions& options, std::string_view checkpoint = {},
               size_t pairs = 6) const {
    return {engine_, options, SomeExamples(*engine_, options.supervision, pairs), checkpoint};
  }

  static void RunSteps(Trainer* trainer, int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(RunUntil(trainer, TrainingEvent::kStep), TrainingEvent::kStep);
  }

  std::shared_ptr<const engine::Engine> engine_ = engine::testing::TinyEngine("tiny-llama");
};

TEST_F(TrainerTest, LearnsItsExamplesInEverySupervision) {
  for (int i = 0; i < 4; ++i) {
    const auto supervision = static_cast<Supervision>(i);
    TrainingOptions options = DefaultOptions(supervision);
    options.epochs = 30;
    options.learning_rate = 2e-2;
    Trainer trainer = Make(options);
    RunSteps(&trainer, 1);
    const double first = trainer.progress().loss;
    EXPECT_EQ(RunUntil(&trainer, TrainingEvent::kFinished), TrainingEvent::kFinished);
    const TrainingProgress progress = trainer.progress();
    std::printf("%s: loss %.3f → %.3f in %ld steps\n", SupervisionName(supervision).data(), first,
                progress.loss, static_cast<long>(progress.step));
    EXPECT_EQ(progress.step, progress.total_steps);
    EXPECT_LT(progress.loss, 0.5 * first);
    EXPECT_GT(progress.trained_tokens, 0U);
    EXPECT_EQ(trainer.Step(), TrainingEvent::kFinished);
  }
}

TEST_F(TrainerTest, TwoHundredStepsEqualAHundredAndAHundredResumedBitForBit) {
  const TrainingOptions options{.rank = 2,
                                .dropout = 0.1,
                                .epochs = 100,
                                .weight_decay = 0.01,
                                .batch_size = 2,
                                .accumulation = 2,
                                .seed = 3};
  Trainer whole = Make(options);
  RunSteps(&whole, 200);
  ASSERT_EQ(whole.progress().step, whole.progress().total_steps);

  std::string checkpoint;
  {
    Trainer first = Make(options);
    RunSteps(&first, 100);
    // What a later, unfinished step has computed doesn't count.
    for (int unit = 0; unit < 3; ++unit) ASSERT_EQ(first.Step(), TrainingEvent::kNone);
    checkpoint = first.Checkpoint();
  }
  Trainer second = Make(options, checkpoint);
  EXPECT_EQ(second.progress().step, 100);
  RunSteps(&second, 100);
  EXPECT_EQ(second.Checkpoint(), whole.Checkpoint());
  EXPECT_EQ(second.Export(), whole.Export());
}

TEST_F(TrainerTest, MemoryIsFoundAgainInAnyMicroBatchSize) {
  const auto losses = [this](uint32_t batch_size, uint32_t accumulation, bool recompute) {
    Trainer trainer = Make({.epochs = 4,
                            .max_gradient_norm = 0.0,
                            .batch_size = batch_size,
                            .accumulation = accumulation,
                            .recompute = recompute});
    std::vector<double> found;
    while (RunUntil(&trainer, TrainingEvent::kStep) == TrainingEvent::kStep) {
      found.push_back(trainer.progress().loss);
    }
    return found;
  };
  const auto together = losses(4, 1, false);
  EXPECT_EQ(together.size(), 8U);  // six examples: the second step of an epoch has two
  const auto apart = losses(1, 4, false);
  ASSERT_EQ(apart.size(), together.size());
  for (size_t i = 0; i < together.size(); ++i) EXPECT_NEAR(apart[i], together[i], 1e-4) << i;
  EXPECT_EQ(losses(4, 1, true), together);
}

TEST_F(TrainerTest, EndsEarlyWithTheWeightsThatWereBestOnTheHeldOutPart) {
  // The answers have nothing to do with each other: what is learnt of some hurts the others.
  const TrainingOptions options{.epochs = 50, .learning_rate = 5e-2, .holdout = 0.3, .patience = 2};
  Trainer trainer = Make(options, {}, 30);
  EXPECT_EQ(trainer.holdout_examples(), 9U);
  EXPECT_EQ(trainer.training_examples(), 21U);
  std::vector<double> losses;
  std::string checkpoint;
  while (RunUntil(&trainer, TrainingEvent::kEvaluation) == TrainingEvent::kEvaluation) {
    losses.push_back(*trainer.progress().holdout_loss);
    if (losses.size() == 1) checkpoint = trainer.Checkpoint();
  }
  ASSERT_LT(losses.size(), 50U);
  ASSERT_GE(losses.size(), 3U);
  const auto best = std::ranges::min_element(losses);
  EXPECT_EQ(best - losses.begin(), static_cast<std::ptrdiff_t>(losses.size()) - 3);

  Trainer resumed = Make(options, checkpoint, 30);
  RunUntil(&resumed, TrainingEvent::kFinished);
  EXPECT_EQ(resumed.Export(), trainer.Export());
  EXPECT_EQ(resumed.Checkpoint(), trainer.Checkpoint());
}

TEST_F(TrainerTest, FewExamplesAreAllTrainedOn) {
  const Trainer trainer = Make({.holdout = 0.5}, {}, 15);
  EXPECT_EQ(trainer.holdout_examples(), 0U);
  EXPECT_EQ(trainer.training_examples(), 15U);
}

TEST_F(TrainerTest, ACheckpointMidwayIsThatOfTheLastStep) {
  Trainer trainer = Make({.epochs = 3});
  RunSteps(&trainer, 1);
  const std::string after_step = trainer.Checkpoint();
  ASSERT_EQ(trainer.Step(), TrainingEvent::kNone);
  ASSERT_EQ(trainer.Step(), TrainingEvent::kNone);
  EXPECT_EQ(trainer.Checkpoint(), after_step);
}

TEST_F(TrainerTest, RefusesTheCheckpointOfOtherOptionsOrExamples) {
  Trainer trainer = Make({.epochs = 3});
  RunSteps(&trainer, 1);
  const std::string checkpoint = trainer.Checkpoint();
  for (const TrainingOptions& options :
       {TrainingOptions{.epochs = 4}, TrainingOptions{.epochs = 3, .seed = 1}}) {
    const auto error = ErrorOf([&] { Make(options, checkpoint); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), engine::ErrorKind::kFailedPrecondition);
  }
  EXPECT_TRUE(ErrorOf([&] { Make({.epochs = 3}, checkpoint, 7); }));
}

TEST_F(TrainerTest, RefusesNoExamplesAndBadOptions) {
  const auto none = ErrorOf([&] { Trainer(engine_, {}, {}); });
  ASSERT_TRUE(none);
  EXPECT_EQ(none->field(), "examples");
  const auto bad = ErrorOf([&] { Make({.rank = 0}); });
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->field(), "rank");
}

}  // namespace
}  // namespace docmem::training
