#include "bench/load_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace docmem::bench {
namespace {

using ::testing::HasSubstr;

Asked Answered(size_t document, double due, double first_token) {
  Asked asked;
  asked.document = document;
  asked.due = due;
  asked.first_token = first_token;
  asked.end = first_token + 0.1;
  asked.gaps = {0.01, 0.03};
  asked.tokens = 3;
  return asked;
}

TEST(PercentileTest, IsTheNearestRank) {
  EXPECT_EQ(Percentile({}, 0.5), 0.0);
  EXPECT_EQ(Percentile({7.0}, 0.99), 7.0);
  EXPECT_EQ(Percentile({1, 2, 3, 4}, 0.5), 2.0);
  EXPECT_EQ(Percentile({1, 2, 3, 4}, 0.51), 3.0);
  EXPECT_EQ(Percentile({1, 2, 3, 4}, 1.0), 4.0);
  EXPECT_EQ(Percentile({1, 2, 3, 4}, 0.0), 1.0);
}

TEST(LoadReportTest, CountsFromWhenAQuestionWasDueAndTellsTheColdQuarterApart) {
  std::vector<Asked> asked = {Answered(0, 1.0, 1.2), Answered(1, 1.0, 1.1), Answered(7, 2.0, 2.9)};
  Asked failed;
  failed.code = absl::StatusCode::kResourceExhausted;
  asked.push_back(failed);
  asked[1].differs = true;
  const LoadReport report(asked, /*documents=*/8, /*seconds=*/3.0);
  const auto json = report.Json();
  EXPECT_EQ(json["questions"], 4);
  EXPECT_DOUBLE_EQ(json["tokens_per_second"], 3.0);
  EXPECT_DOUBLE_EQ(json["questions_per_second"], 1.0);
  EXPECT_NEAR(json["first_token_ms"]["p50"], 200.0, 1e-6);
  EXPECT_NEAR(json["coldest_quarter_first_token_ms"]["p50"], 900.0, 1e-6);
  EXPECT_NEAR(json["gap_ms"]["max"], 30.0, 1e-6);
  EXPECT_EQ(json["errors"]["RESOURCE_EXHAUSTED"], 1);
  EXPECT_EQ(json["different_answers"], 1);
  EXPECT_THAT(report.Text(), HasSubstr("failed: RESOURCE_EXHAUSTED 1"));
  EXPECT_THAT(report.Text(), HasSubstr("answers that differ: 1"));
}

TEST(LoadReportTest, NothingAskedIsNoFailure) {
  const LoadReport report({}, 3, 1.0);
  EXPECT_EQ(report.Json()["questions"], 0);
  EXPECT_EQ(report.Json()["first_token_ms"]["p99"], 0.0);
  EXPECT_THAT(report.Text(), HasSubstr("0 questions"));
}

}  // namespace
}  // namespace docmem::bench
