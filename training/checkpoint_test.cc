#include "training/checkpoint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "engine/model/testing.h"

namespace docmem::training {
namespace {

using engine::ErrorKind;
using engine::testing::ErrorOf;

TrainingState SomeState() {
  return {.step = 12,
          .evaluations = 3,
          .bad_evaluations = 1,
          .best_loss = 0.1,
          .loss = 0.25,
          .holdout_loss = 1.0 / 3.0,
          .trained_tokens = 1'234,
          .values = at::arange(10, at::kFloat),
          .first_moment = at::arange(10, at::kFloat) * 2,
          .second_moment = at::arange(10, at::kFloat) * 3,
          .best_values = at::arange(10, at::kFloat) * 4};
}

TEST(CheckpointTest, ReadsBackWhatWasWritten) {
  const TrainingState read = ReadCheckpoint(WriteCheckpoint(SomeState(), "inputs"), "inputs");
  EXPECT_EQ(read.step, 12);
  EXPECT_EQ(read.evaluations, 3);
  EXPECT_EQ(read.bad_evaluations, 1);
  EXPECT_EQ(read.best_loss, 0.1);
  EXPECT_EQ(read.loss, 0.25);
  EXPECT_EQ(read.holdout_loss, 1.0 / 3.0);
  EXPECT_EQ(read.trained_tokens, 1'234U);
  EXPECT_TRUE(at::equal(read.values, SomeState().values));
  EXPECT_TRUE(at::equal(read.first_moment, SomeState().first_moment));
  EXPECT_TRUE(at::equal(read.second_moment, SomeState().second_moment));
  EXPECT_TRUE(at::equal(read.best_values, SomeState().best_values));
}

TEST(CheckpointTest, WithoutAnEvaluationThereIsNoBest) {
  TrainingState state = SomeState();
  state.best_loss.reset();
  state.holdout_loss.reset();
  state.best_values.reset();
  const TrainingState read = ReadCheckpoint(WriteCheckpoint(state, "inputs"), "inputs");
  EXPECT_FALSE(read.best_loss);
  EXPECT_FALSE(read.holdout_loss);
  EXPECT_FALSE(read.best_values.defined());
}

TEST(CheckpointTest, EqualStatesGiveEqualBytes) {
  EXPECT_EQ(WriteCheckpoint(SomeState(), "a"), WriteCheckpoint(SomeState(), "a"));
}

TEST(CheckpointTest, RefusesTheCheckpointOfAnotherTraining) {
  const std::string file = WriteCheckpoint(SomeState(), "inputs");
  const auto error = ErrorOf([&] { ReadCheckpoint(file, "others"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::kFailedPrecondition);
}

TEST(CheckpointTest, EveryCutAndEveryFlippedByteIsNoticed) {
  const std::string file = WriteCheckpoint(SomeState(), "inputs");
  for (size_t i = 0; i < file.size(); i += 7) {
    const auto cut = ErrorOf([&] { ReadCheckpoint(file.substr(0, i), "inputs"); });
    ASSERT_TRUE(cut) << i;
    EXPECT_EQ(cut->kind(), ErrorKind::kDataLoss) << i;
    std::string flipped = file;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x20);
    const auto damaged = ErrorOf([&] { ReadCheckpoint(flipped, "inputs"); });
    ASSERT_TRUE(damaged) << i;
    EXPECT_EQ(damaged->kind(), ErrorKind::kDataLoss) << i;
  }
}

}  // namespace
}  // namespace docmem::training
