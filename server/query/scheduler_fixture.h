#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/query/scheduler.h"
#include "server/runtime/test_event.h"
#include "server/runtime/testing.h"

namespace docmem::server {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

class RecordingSink : public AnswerSink {
 public:
  void OnStarted(const AnswerStarted& value) override {
    EXPECT_FALSE(started.has_value());
    started = value;
  }
  void OnProgress(const AnswerProgress& progress) override {
    queue_position = progress.queue_position;
    ++progress_messages;
  }
  void OnDelta(AnswerDelta delta) override {
    EXPECT_TRUE(started.has_value());
    text += delta.text;
    tokens.insert(tokens.end(), delta.token_ids.begin(), delta.token_ids.end());
    logprobs.insert(logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
    if (!first_token.HasHappened()) first_token.Notify();
  }
  void OnFinished(const AnswerFinished& value) override { finished = value; }
  void OnClosed(const absl::Status& end) override {
    status = end;
    closed.Notify();
  }
  bool WaitClosed() { return closed.WaitFor(kPatience); }

  std::optional<AnswerStarted> started;
  std::atomic<int> progress_messages{0};
  std::atomic<uint32_t> queue_position{0};
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::optional<AnswerFinished> finished;
  absl::Status status;
  TestEvent first_token;
  TestEvent closed;
};

class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() = default;
  explicit SchedulerTest(const MemoriesOptions& budgets) : parts_(budgets) {}
  ~SchedulerTest() override { parts_.StopThreads(); }

  /// Once per test.
  Scheduler* MakeScheduler(SchedulerOptions options = {}) {
    scheduler_ = std::make_unique<Scheduler>(SchedulerParts{.engine = TinyEngine(),
                                                            .store = parts_.store.get(),
                                                            .memories = &parts_.memories,
                                                            .loop = &parts_.loop,
                                                            .timer = &parts_.timer,
                                                            .executor = &parts_.executor,
                                                            .metrics = &parts_.metrics,
                                                            .build_missing = build_missing_},
                                             options);
    return scheduler_.get();
  }

  static Question Ask(const std::string& document, const std::string& request_id) {
    Question question;
    question.principal = "tester";
    question.request_id = request_id;
    question.document = {"default", document};
    question.question = "Which lamp is lit?";
    question.max_tokens = 6;
    return question;
  }

  std::shared_ptr<RecordingSink> Submit(Question question) {
    const auto sink = std::make_shared<RecordingSink>();
    const absl::Status status = scheduler_->Submit(std::move(question), sink);
    EXPECT_TRUE(status.ok()) << status;
    return sink;
  }

  /// The question "endless" on document d; has begun to answer.
  std::shared_ptr<RecordingSink> StartEndless() {
    const auto sink = std::make_shared<RecordingSink>();
    Question endless = Ask("d", "endless");
    endless.max_tokens = 100'000;
    EXPECT_TRUE(scheduler_->Submit(std::move(endless), sink).ok());
    EXPECT_TRUE(sink->first_token.WaitFor(kPatience));
    return sink;
  }

  TestParts parts_;
  BuildMissingCache build_missing_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace docmem::server
