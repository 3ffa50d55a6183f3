#include "training/adamw.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/model/testing.h"

namespace docmem::training {
namespace {

engine::ModelConfig SmallConfig() {
  return engine::ModelConfig::Load(engine::testing::Reference("models/tiny-llama"));
}

class AdamWTest : public ::testing::Test {
 protected:
  LoraParameters parameters_{
      SmallConfig(), {.rank = 2, .scale = 1.0, .modules = {engine::Module::kQ}}, at::kCPU, 1};
  AdamW optimizer_{parameters_};
};

TEST_F(AdamWTest, EqualsTheFormulaOverSeveralSteps) {
  at::Tensor expected = parameters_.values().to(at::kDouble).clone();
  at::Tensor m = at::zeros_like(expected), v = at::zeros_like(expected);
  for (int step = 1; step <= 5; ++step) {
    const at::Tensor gradient = at::sin(at::arange(expected.size(0), at::kDouble) * step);
    parameters_.gradient().copy_(gradient);
    optimizer_.Step(parameters_, {.learning_rate = 0.01, .weight_decay = 0.1});
    m = 0.9 * m + 0.1 * gradient;
    v = 0.999 * v + 0.001 * gradient * gradient;
    const at::Tensor bias_free = m / (1.0 - std::pow(0.9, step));
    const at::Tensor size = (v / (1.0 - std::pow(0.999, step))).sqrt() + 1e-8;
    expected = expected * (1.0 - 0.01 * 0.1) - 0.01 * bias_free / size;
    EXPECT_EQ(parameters_.gradient().abs().max().item<float>(), 0.0F);
  }
  EXPECT_LT(engine::testing::MaxDifference(parameters_.values(), expected), 1e-6);
  EXPECT_EQ(optimizer_.steps(), 5);
}

TEST_F(AdamWTest, ClipsAGradientAboveTheNormAndTellsTheNormBefore) {
  const auto moment_after = [this](double max_norm) {
    AdamW optimizer(parameters_);
    parameters_.gradient().fill_(1.0);
    const double norm = optimizer.Step(parameters_, {.max_gradient_norm = max_norm});
    EXPECT_NEAR(norm, std::sqrt(parameters_.values().size(0)), 1e-3);
    return optimizer.first_moment().norm().item<double>();
  };
  EXPECT_NEAR(moment_after(1.0), 0.1, 1e-4);
  const double unclipped = 0.1 * std::sqrt(parameters_.values().size(0));
  EXPECT_NEAR(moment_after(0.0), unclipped, 1e-3);
  EXPECT_NEAR(moment_after(1e6), unclipped, 1e-3);
}

TEST_F(AdamWTest, AGradientThatIsntFiniteChangesNothing) {
  const at::Tensor before = parameters_.values().clone();
  parameters_.gradient()[3] = std::numeric_limits<float>::quiet_NaN();
  const auto error = engine::testing::ErrorOf(
      [&] { optimizer_.Step(parameters_, {.learning_rate = 1.0, .max_gradient_norm = 1.0}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->field(), "gradient");
  EXPECT_TRUE(at::equal(parameters_.values(), before));
  EXPECT_EQ(optimizer_.steps(), 0);
}

}  // namespace
}  // namespace docmem::training
