#include "eval/progress_line.h"

#include <gtest/gtest.h>

namespace docmem::eval {
namespace {

TEST(ProgressTextTest, TellsPartTimeLeftAndWhatIsDone) {
  const Progress progress = {.done = 0.25, .document = 3, .documents = 8, .activity = "training"};
  EXPECT_EQ(ProgressText(progress, 60.0),
            "[=======>                      ]  25 %  3:00 left  document 3/8, training");
}

TEST(ProgressTextTest, TellsNoTimeBeforeItKnowsAny) {
  const Progress progress = {.documents = 8, .activity = "ingesting"};
  EXPECT_EQ(ProgressText(progress, 1.0),
            "[>                             ]   0 %  document 0/8, ingesting");
}

TEST(ProgressTextTest, LongTimesHaveHours) {
  const Progress progress = {.done = 0.5, .document = 1, .documents = 1, .activity = "answering"};
  EXPECT_NE(ProgressText(progress, 7384.0).find("2:03:04 left"), std::string::npos);
}

}  // namespace
}  // namespace docmem::eval
