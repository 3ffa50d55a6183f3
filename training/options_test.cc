#include "training/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/model/testing.h"

namespace docmem::training {
namespace {

using engine::testing::ErrorOf;

TEST(TrainingOptionsTest, DefaultsAreValidForAllSupervisionsAndNamesReadBack) {
  for (int i = 0; i < 4; ++i) {
    const auto supervision = static_cast<Supervision>(i);
    EXPECT_NO_THROW(ValidateOptions(DefaultOptions(supervision)));
    EXPECT_EQ(DefaultOptions(supervision).supervision, supervision);
    EXPECT_EQ(SupervisionFromName(SupervisionName(supervision)), supervision);
  }
  EXPECT_FALSE(SupervisionFromName("RAW"));
}

TEST(TrainingOptionsTest, RefusesValuesOutOfRangeByName) {
  const auto field = [](auto change) {
    TrainingOptions options;
    change(options);
    const auto error = ErrorOf([&] { ValidateOptions(options); });
    return error ? error->field() : "";
  };
  EXPECT_EQ(field([](auto& o) { o.rank = 0; }), "rank");
  EXPECT_EQ(field([](auto& o) { o.rank = 65; }), "rank");
  EXPECT_EQ(field([](auto& o) { o.alpha = 0.0; }), "alpha");
  EXPECT_EQ(field([](auto& o) { o.modules.clear(); }), "modules");
  EXPECT_EQ(field([](auto& o) { o.modules.push_back(engine::Module::kQ); }), "modules");
  EXPECT_EQ(field([](auto& o) { o.dropout = 1.0; }), "dropout");
  EXPECT_EQ(field([](auto& o) { o.epochs = 1001; }), "epochs");
  EXPECT_EQ(field([](auto& o) { o.learning_rate = -1e-3; }), "learning_rate");
  EXPECT_EQ(field([](auto& o) { o.warmup = 1.1; }), "warmup");
  EXPECT_EQ(field([](auto& o) { o.weight_decay = std::numeric_limits<double>::quiet_NaN(); }),
            "weight_decay");
  EXPECT_EQ(field([](auto& o) { o.max_gradient_norm = -1.0; }), "max_gradient_norm");
  EXPECT_EQ(field([](auto& o) { o.batch_size = 0; }), "batch_size");
  EXPECT_EQ(field([](auto& o) { o.accumulation = 0; }), "accumulation");
  EXPECT_EQ(field([](auto& o) { o.holdout = 0.6; }), "holdout");
  EXPECT_EQ(field([](auto& o) { o.patience = 0; }), "patience");
}

TEST(TrainingOptionsTest, TheTextTellsOptionsApart) {
  const std::string defaults = OptionsJson({});
  EXPECT_EQ(OptionsJson({}), defaults);
  EXPECT_NE(OptionsJson({.rank_stabilised = true}), defaults);
  EXPECT_NE(OptionsJson({.learning_rate = 2.0000001e-3}), defaults);
  EXPECT_NE(OptionsJson({.modules = {engine::Module::kQ}}), defaults);
}

TEST(TrainingOptionsTest, TheTextGivesTheOptionsBack) {
  const TrainingOptions options{.supervision = Supervision::kContextQa,
                                .rank = 3,
                                .modules = {engine::Module::kV, engine::Module::kDown},
                                .learning_rate = 1.0 / 3.0,
                                .seed = 0xFFFFFFFFFFFFFFFF};
  EXPECT_EQ(OptionsJson(OptionsFromJson(OptionsJson(options))), OptionsJson(options));
  for (const char* text : {"", "{}", "[]", R"({"supervision": "OTHER"})"}) {
    const auto error = ErrorOf([&] { OptionsFromJson(text); });
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->kind(), engine::ErrorKind::kDataLoss) << text;
  }
}

TEST(TrainingOptionsTest, ScaleIsAlphaByRankOrByItsRoot) {
  TrainingOptions options{.rank = 16, .alpha = 8.0};
  EXPECT_DOUBLE_EQ(LoraScale(options), 0.5);
  options.rank_stabilised = true;
  EXPECT_DOUBLE_EQ(LoraScale(options), 2.0);
}

TEST(LearningRateTest, RisesLinearlyThenFallsAsHalfACosine) {
  const TrainingOptions options{.learning_rate = 1.0, .warmup = 0.1};
  EXPECT_DOUBLE_EQ(LearningRate(options, 0, 100), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(options, 9, 100), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(options, 10, 100), 1.0);
  EXPECT_NEAR(LearningRate(options, 55, 100), 0.5, 1e-12);
  EXPECT_GT(LearningRate(options, 99, 100), 0.0);
  EXPECT_LT(LearningRate(options, 99, 100), 1e-3);
}

TEST(LearningRateTest, IsNeverZeroEvenInOneStep) {
  for (const double warmup : {0.0, 0.5, 1.0}) {
    EXPECT_GT(LearningRate({.warmup = warmup}, 0, 1), 0.0);
  }
}

}  // namespace
}  // namespace docmem::training
