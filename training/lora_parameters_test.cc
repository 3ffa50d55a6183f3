#include "training/lora_parameters.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "engine/model/testing.h"

namespace docmem::training {
namespace {

using engine::Module;

const LoraShape kShape = {.rank = 3, .scale = 0.5, .modules = {Module::kQ, Module::kDown}};

engine::ModelConfig TinyConfig() {
  return engine::ModelConfig::Load(engine::testing::Reference("models/tiny-llama"));
}

TEST(LoraParametersTest, StartsAtTheBaseModelWithPeftsDistribution) {
  const LoraParameters parameters(TinyConfig(), kShape, at::kCPU, 1);
  const engine::LoraWeights weights = parameters.Layer(1, at::kFloat);
  const engine::LoraPair& pair = weights.At(1, Module::kDown);
  EXPECT_EQ(pair.a.sizes(), (at::IntArrayRef{3, 96}));
  EXPECT_EQ(pair.b.sizes(), (at::IntArrayRef{64, 3}));
  EXPECT_EQ(pair.b.abs().max().item<float>(), 0.0F);
  const double bound = 1.0 / std::sqrt(96.0);
  EXPECT_LE(pair.a.abs().max().item<double>(), bound);
  EXPECT_NEAR(pair.a.std().item<double>(), bound / std::sqrt(3.0), 0.1 * bound);
  EXPECT_FALSE(weights.At(1, Module::kK).defined());
  EXPECT_FALSE(weights.At(0, Module::kQ).defined());
}

TEST(LoraParametersTest, TheFirstWeightsAreAFunctionOfTheSeed) {
  const LoraParameters one(TinyConfig(), kShape, at::kCPU, 1);
  const LoraParameters same(TinyConfig(), kShape, at::kCPU, 1);
  const LoraParameters other(TinyConfig(), kShape, at::kCPU, 2);
  EXPECT_TRUE(at::equal(one.values(), same.values()));
  EXPECT_FALSE(at::equal(one.values(), other.values()));
}

TEST(LoraParametersTest, GradientsOfAReducedCopyAddUpInFullPrecision) {
  const LoraParameters parameters(TinyConfig(), kShape, at::kCPU, 1);
  for (int pass = 0; pass < 2; ++pass) {
    parameters.Layer(0, at::kBFloat16).At(0, Module::kQ).a.sum().backward();
  }
  EXPECT_EQ(parameters.gradient().scalar_type(), at::kFloat);
  EXPECT_EQ(parameters.gradient().sum().item<float>(), 2.0F * 3 * 64);
}

TEST(LoraParametersTest, ViewsSeeWhatChangesTheFlatValuesAndCopiesDont) {
  const LoraParameters parameters(TinyConfig(), kShape, at::kCPU, 1);
  const engine::LoraWeights copy = parameters.Copy(parameters.values(), at::kFloat);
  parameters.values().fill_(7.0);
  EXPECT_EQ(parameters.Layer(1, at::kFloat).At(1, Module::kDown).b.min().item<float>(), 7.0F);
  EXPECT_EQ(copy.At(1, Module::kDown).b.max().item<float>(), 0.0F);
  EXPECT_FALSE(copy.At(1, Module::kDown).b.requires_grad());
}

}  // namespace
}  // namespace docmem::training
