#include "eval/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/model/testing.h"

namespace docmem::eval {
namespace {

using engine::Mode;
using engine::testing::ErrorOf;
using training::Supervision;

TEST(SettingsTest, RefusesByOption) {
  const auto field = [](auto change) {
    Settings settings{.seen_part = 0.5};
    change(settings);
    const auto error = ErrorOf([&] { ValidateSettings(settings); });
    return error ? error->field() : "";
  };
  EXPECT_EQ(field([](auto&) {}), "");
  EXPECT_EQ(field([](auto& s) { s.modes.clear(); }), "--modes");
  EXPECT_EQ(field([](auto& s) { s.ratios_ppm = {0, 0}; }), "--ratios");
  EXPECT_EQ(field([](auto& s) { s.ratios_ppm = {1'000'001}; }), "--ratios");
  EXPECT_EQ(field([](auto& s) { s.max_tokens = 0; }), "--max-tokens");
  EXPECT_EQ(field([](auto& s) { s.seen_part = 1.5; }), "--seen-part");
  EXPECT_EQ(field([](auto& s) { s.synthetic_pairs = -1; }), "--synthetic-pairs");
  EXPECT_EQ(field([](auto& s) { s.batch = 0; }), "--batch");
  EXPECT_EQ(field([](auto& s) { s.training.rank = 65; }), "rank");
  EXPECT_EQ(field([](auto& s) { s.seen_part = 0.0; }), "--supervisions");
}

TEST(SettingsTest, PairsAreNeededOnlyWhereSomethingIsTrainedOnThem) {
  EXPECT_NO_THROW(ValidateSettings({.supervisions = {Supervision::kRawContext}}));
  EXPECT_NO_THROW(ValidateSettings({.modes = {Mode::kBase}}));
  EXPECT_NO_THROW(ValidateSettings({.synthetic_pairs = 4}));
}

TEST(SettingsTest, ChangesGoOverTheSupervisionsOwnDefaults) {
  Settings settings{.seed = 7};
  settings.training = {.rank = 3, .epochs = 2, .recompute = true};
  const auto options = TrainingOptionsOf(settings, Supervision::kRawContext);
  const auto defaults = training::DefaultOptions(Supervision::kRawContext);
  EXPECT_EQ(options.rank, 3U);
  EXPECT_EQ(options.epochs, 2U);
  EXPECT_EQ(options.seed, 7U);
  EXPECT_TRUE(options.recompute);
  EXPECT_EQ(options.batch_size, defaults.batch_size);
  EXPECT_EQ(options.supervision, Supervision::kRawContext);
}

TEST(SettingsTest, RatiosAreMillionths) {
  EXPECT_EQ(RatioPpm(0.0), 0U);
  EXPECT_EQ(RatioPpm(0.995), 995'000U);
  EXPECT_EQ(RatioPpm(1.0), 1'000'000U);
  EXPECT_TRUE(ErrorOf([] { RatioPpm(0.9999999); }));
  EXPECT_TRUE(ErrorOf([] { RatioPpm(1.1); }));
}

TEST(SplitTest, IsAFunctionOfTheSeedAndLeavesUnseenQuestions) {
  Settings settings{.seen_part = 0.5, .seed = 1};
  const Split split = SplitQuestions(20, settings);
  ASSERT_EQ(split.asked.size(), 20U);
  EXPECT_EQ(std::ranges::count(split.seen, true), 10);
  EXPECT_EQ(SplitQuestions(20, settings).seen, split.seen);
  settings.seed = 2;
  EXPECT_NE(SplitQuestions(20, settings).seen, split.seen);
  settings.seen_part = 1.0;
  EXPECT_EQ(std::ranges::count(SplitQuestions(20, settings).seen, true), 19);
  settings.seen_part = 0.01;
  EXPECT_EQ(std::ranges::count(SplitQuestions(2, settings).seen, true), 1);
  settings.seen_part = 0.0;
  EXPECT_EQ(std::ranges::count(SplitQuestions(20, settings).seen, true), 0);
}

TEST(SplitTest, DrawsSomeQuestionsInTheDocumentsOrder) {
  const Split split = SplitQuestions(50, {.seen_part = 0.5, .questions = 6});
  ASSERT_EQ(split.asked.size(), 6U);
  EXPECT_TRUE(std::ranges::is_sorted(split.asked));
  EXPECT_LT(split.asked.back(), 50U);
  EXPECT_EQ(std::set(split.asked.begin(), split.asked.end()).size(), 6U);
  EXPECT_EQ(std::ranges::count(split.seen, true), 3);
}

TEST(CellsTest, EveryModeUnderEverySupervisionAndTheBaselineAlways) {
  const auto cells = CellsOf({.modes = {Mode::kAdapterPrefill, Mode::kBaseKvAdapterDecode},
                              .supervisions = {Supervision::kContextQa, Supervision::kRawContext},
                              .ratios_ppm = {900'000, 0}});
  ASSERT_EQ(cells.size(), 5U);
  EXPECT_EQ(cells[0].mode, Mode::kBase);
  EXPECT_FALSE(cells[0].supervision);
  EXPECT_EQ(cells[0].ratios_ppm, (std::vector<uint32_t>{1'000'000}));
  EXPECT_EQ(cells[1].mode, Mode::kAdapterPrefill);
  EXPECT_EQ(cells[1].supervision, Supervision::kContextQa);
  EXPECT_EQ(cells[1].ratios_ppm, (std::vector<uint32_t>{0, 900'000}));
  EXPECT_EQ(cells[4].mode, Mode::kBaseKvAdapterDecode);
  EXPECT_EQ(cells[4].supervision, Supervision::kRawContext);
}

TEST(CellsTest, TheBaseModelIsAskedAtAllRatiosIfWanted) {
  const auto cells = CellsOf({.modes = {Mode::kBase}, .ratios_ppm = {500'000, 0}});
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_EQ(cells[0].ratios_ppm, (std::vector<uint32_t>{0, 500'000, 1'000'000}));
}

}  // namespace
}  // namespace docmem::eval
