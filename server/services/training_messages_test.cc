#include "server/services/training_messages.h"

#include <gtest/gtest.h>

#include "server/errors/error.h"

namespace docmem::server {
namespace {

std::string FieldOf(const v1::TrainingOptions& options) {
  const absl::Status status = ToTrainingRequest(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return store::DetailsOf(status).at("field");
}

TEST(TrainingMessagesTest, WhatIsUnsetTakesTheDefaultsOfItsSupervision) {
  const auto request = ToTrainingRequest({});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(training::OptionsJson(request->options),
            training::OptionsJson(training::DefaultOptions(training::Supervision::kSyntheticQa)));
  EXPECT_FALSE(request->synthetic_pairs);
  v1::TrainingOptions raw;
  raw.set_supervision(v1::SUPERVISION_RAW_CONTEXT);
  raw.set_seed(0);
  EXPECT_EQ(training::OptionsJson(ToTrainingRequest(raw)->options),
            training::OptionsJson(training::DefaultOptions(training::Supervision::kRawContext)));
}

TEST(TrainingMessagesTest, AReportShowsTheOptionsThatWereUsed) {
  v1::TrainingOptions options;
  options.set_rank(3);
  options.set_alpha(6.0);
  options.add_modules("q_proj");
  options.add_modules("down_proj");
  options.set_synthetic_pairs(5);
  options.set_learning_rate(0.25);
  options.set_keep_current(true);
  auto request = ToTrainingRequest(options);
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::TrainingJob job =
      ToMessage(TrainingReport{.id = "training-1", .request = *std::move(request)});
  EXPECT_EQ(job.options().supervision(), v1::SUPERVISION_SYNTHETIC_QA);
  EXPECT_EQ(job.options().rank(), 3U);
  EXPECT_EQ(job.options().modules_size(), 2);
  EXPECT_EQ(job.options().modules(1), "down_proj");
  EXPECT_EQ(job.options().synthetic_pairs(), 5U);
  EXPECT_EQ(job.options().learning_rate(), 0.25);
  EXPECT_EQ(job.options().epochs(), 25U);
  EXPECT_TRUE(job.options().keep_current());
  EXPECT_EQ(job.state(), v1::TrainingJob::STATE_QUEUED);
  EXPECT_FALSE(job.has_start_time());
}

TEST(TrainingMessagesTest, RefusalsNameTheField) {
  v1::TrainingOptions options;
  options.add_qa()->set_question("q");
  EXPECT_EQ(FieldOf(options), "options.qa[0]");
  options.mutable_qa(0)->set_answer(std::string(kMaxQaBytes + 1, 'a'));
  EXPECT_EQ(FieldOf(options), "options.qa[0]");
  options.mutable_qa(0)->set_answer("a");
  options.set_supervision(v1::SUPERVISION_CONTEXT_CONTINUATION);
  EXPECT_EQ(FieldOf(options), "options.qa");
  options.set_supervision(v1::SUPERVISION_CONTEXT_QA);
  EXPECT_TRUE(ToTrainingRequest(options).ok());
  for (int i = 0; i < kMaxQaPairs; ++i) *options.add_qa() = options.qa(0);
  EXPECT_EQ(FieldOf(options), "options.qa");
  options.clear_qa();
  options.set_synthetic_pairs(0);
  EXPECT_EQ(FieldOf(options), "options.synthetic_pairs");
  options.set_synthetic_pairs(kMaxSyntheticPairs + 1);
  EXPECT_EQ(FieldOf(options), "options.synthetic_pairs");
  options.clear_synthetic_pairs();
  options.add_modules("lm_head");
  EXPECT_EQ(FieldOf(options), "options.modules");
  options.clear_modules();
  options.set_supervision(static_cast<v1::Supervision>(77));
  EXPECT_EQ(FieldOf(options), "options.supervision");
  options.clear_supervision();
  options.set_epochs(0);
  EXPECT_EQ(FieldOf(options), "epochs");
}

}  // namespace
}  // namespace docmem::server
