#include "training/micro_batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/model/testing.h"
#include "engine/testing.h"
#include "training/testing.h"

namespace docmem::training {
namespace {

using engine::Module;

class MicroBatchTest : public ::testing::Test {
 protected:
  explicit MicroBatchTest(const std::string& dtype = "float32")
      : engine_(engine::testing::TinyEngine("tiny-llama", dtype)) {
    // B = 0 would hide most of what can go wrong.
    parameters_.values().add_(at::sin(at::arange(parameters_.values().size(0), at::kFloat)), 0.05);
  }

  MicroBatch Pass(const std::vector<Example>& examples, const PassOptions& options) {
    std::vector<const Example*> pointers;
    for (const Example& example : examples) pointers.push_back(&example);
    return {engine_->transformer(), parameters_, &prefixes_, pointers, options};
  }

  at::Tensor GradientOf(const std::vector<Example>& examples, const PassOptions& options) {
    parameters_.gradient().zero_();
    MicroBatch pass = Pass(examples, options);
    RunPass(&pass);
    return parameters_.gradient().clone();
  }

  double LossOf(const std::vector<Example>& examples) {
    MicroBatch pass = Pass(examples, {.gradients = false});
    RunPass(&pass);
    return pass.loss_sum();
  }

  std::shared_ptr<const engine::Engine> engine_;
  LoraParameters parameters_{engine_->config(),
                             {.rank = 4, .scale = 2.0, .modules = TrainingOptions().modules},
                             at::kCPU,
                             5};
  PrefixCache prefixes_{engine_->transformer(), 1 << 20};
};

TEST_F(MicroBatchTest, WorksInUnitsOfOneLayerOneWay) {
  const auto examples = testing::SomeExamples(*engine_, Supervision::kSyntheticQa);
  MicroBatch pass = Pass(examples, {});
  int units = 1;
  while (!pass.Step()) ++units;
  // The six prefixes (one of them computed, in a few units), two layers both ways, the logits.
  EXPECT_GE(units, 6 + 2 + 1 + 2);
  EXPECT_GT(pass.loss_sum(), 0.0);
  EXPECT_GT(parameters_.gradient().abs().max().item<float>(), 0.0F);
}

TEST_F(MicroBatchTest, AnExamplesLossDoesntDependOnItsNeighbours) {
  const auto examples = testing::SomeExamples(*engine_, Supervision::kContextQa);
  double sum = 0.0;
  for (const Example& example : examples) sum += LossOf({example});
  EXPECT_NEAR(LossOf(examples) / sum, 1.0, 1e-5);
}

TEST_F(MicroBatchTest, WithoutGradientsNothingIsAdded) {
  parameters_.gradient().zero_();
  LossOf(testing::SomeExamples(*engine_, Supervision::kRawContext));
  EXPECT_EQ(parameters_.gradient().abs().max().item<float>(), 0.0F);
}

TEST_F(MicroBatchTest, GradientsEqualDifferencesOfTheLoss) {
  const auto examples = testing::SomeExamples(*engine_, Supervision::kContextContinuation);
  const at::Tensor direction = at::sin(at::arange(parameters_.values().size(0), at::kFloat) * 3);
  const at::Tensor gradient = GradientOf(examples, {});
  const double expected = gradient.dot(direction).item<double>();
  constexpr double kStep = 1e-3;
  parameters_.values().add_(direction, kStep);
  const double above = LossOf(examples);
  parameters_.values().add_(direction, -2.0 * kStep);
  const double below = LossOf(examples);
  EXPECT_NEAR((above - below) / (2.0 * kStep) / expected, 1.0, 0.02);
}

TEST_F(MicroBatchTest, DropoutIsAFunctionOfItsSeedAlsoWhenRecomputed) {
  const auto examples = testing::SomeExamples(*engine_, Supervision::kSyntheticQa);
  const at::Tensor plain = GradientOf(examples, {});
  const at::Tensor dropped = GradientOf(examples, {.dropout = 0.5, .dropout_seed = 1});
  EXPECT_TRUE(at::equal(dropped, GradientOf(examples, {.dropout = 0.5, .dropout_seed = 1})));
  EXPECT_TRUE(at::equal(
      dropped, GradientOf(examples, {.recompute = true, .dropout = 0.5, .dropout_seed = 1})));
  EXPECT_FALSE(at::equal(dropped, GradientOf(examples, {.dropout = 0.5, .dropout_seed = 2})));
  EXPECT_FALSE(at::equal(dropped, plain));
}

TEST_F(MicroBatchTest, ALossThatIsntFiniteIsAnError) {
  parameters_.values().fill_(std::numeric_limits<float>::quiet_NaN());
  const auto examples = testing::SomeExamples(*engine_, Supervision::kSyntheticQa);
  MicroBatch pass = Pass(examples, {});
  const auto error = engine::testing::ErrorOf([&] { RunPass(&pass); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->field(), "loss");
}

class Bfloat16MicroBatchTest : public MicroBatchTest {
 protected:
  Bfloat16MicroBatchTest() : MicroBatchTest("bfloat16") {}
};

TEST_F(Bfloat16MicroBatchTest, GradientsAreFullPrecisionAndNearThoseOfTheFp32Model) {
  const auto full = engine::testing::TinyEngine("tiny-llama");
  const auto examples = testing::SomeExamples(*engine_, Supervision::kSyntheticQa);
  const at::Tensor reduced = GradientOf(examples, {});
  std::vector<const Example*> pointers;
  for (const Example& example : examples) pointers.push_back(&example);
  PrefixCache prefixes(full->transformer(), 1 << 20);
  parameters_.gradient().zero_();
  MicroBatch pass(full->transformer(), parameters_, &prefixes, pointers, {});
  RunPass(&pass);
  const at::Tensor& exact = parameters_.gradient();
  EXPECT_EQ(reduced.scalar_type(), at::kFloat);
  EXPECT_LT(((reduced - exact).norm() / exact.norm()).item<double>(), 0.1);
}

}  // namespace
}  // namespace docmem::training
