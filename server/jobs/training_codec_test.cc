#include "server/jobs/training_codec.h"

#include <gtest/gtest.h>

namespace docmem::server {
namespace {

TEST(TrainingCodecTest, WhatToTrainComesBackWhole) {
  StoredTraining training{.text_sha256 = "ab", .synthesized = true};
  training.request.options.rank = 3;
  training.request.options.learning_rate = 1.0 / 3.0;
  training.request.pairs = {{.question = "Who?", .answer = "\"Zoë\"\n"}};
  training.request.synthetic_pairs = 7;
  training.request.keep_current = true;
  training.pairs = {{.question = "Where?", .answer = "There.", .chunk = 2}};
  const auto read = ReadTraining(WriteTraining(training));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(WriteTraining(*read), WriteTraining(training));
  EXPECT_EQ(read->request.options.learning_rate, 1.0 / 3.0);
  EXPECT_EQ(read->request.pairs.at(0).answer, "\"Zoë\"\n");
  EXPECT_FALSE(read->request.pairs.at(0).chunk);
  EXPECT_EQ(read->pairs.at(0).chunk, 2U);
}

TEST(TrainingCodecTest, AReportComesBackWhole) {
  const TrainingReport report{.state = TrainingState::kTraining,
                              .message = "why",
                              .step = 5,
                              .total_steps = 9,
                              .loss = 0.25,
                              .holdout_loss = 0.5,
                              .tokens_per_second = 300.0,
                              .remaining_seconds = 4.0,
                              .qa_given = 1,
                              .qa_synthesized = 2,
                              .qa_dropped = 3,
                              .adapter_version = 4,
                              .started = absl::FromUnixNanos(1'700'000'000'123'456'789)};
  TrainingReport read;
  ASSERT_TRUE(ReadReport(WriteReport(report), &read).ok());
  EXPECT_EQ(WriteReport(read), WriteReport(report));
  EXPECT_EQ(read.started, report.started);
  EXPECT_EQ(read.ended, absl::InfinitePast());
}

TEST(TrainingCodecTest, OtherBytesAreDataLossAndChangeNothing) {
  for (const char* bytes : {"", "{}", "[]", "null", "{\"state\": 77}", "\xFF"}) {
    EXPECT_TRUE(absl::IsDataLoss(ReadTraining(bytes).status())) << bytes;
    TrainingReport report{.step = 5};
    EXPECT_TRUE(absl::IsDataLoss(ReadReport(bytes, &report))) << bytes;
    EXPECT_EQ(report.step, 5U);
  }
}

TEST(TrainingCodecTest, EachRowHasOneId) {
  EXPECT_EQ(RowOfTraining(TrainingId(17)), 17);
  for (const char* id : {"", "17", "training-", "training-017", "training-0", "training--1",
                         "training-+1", "training- 1", "training-99999999999999999999", "x"}) {
    EXPECT_EQ(RowOfTraining(id), 0) << id;
  }
}

}  // namespace
}  // namespace docmem::server
