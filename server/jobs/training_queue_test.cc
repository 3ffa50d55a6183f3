#include "server/jobs/training_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/runtime/test_event.h"
#include "server/runtime/testing.h"

namespace docmem::server {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

TrainingRequest Pairs(uint32_t epochs) {
  TrainingRequest request;
  request.options.rank = 2;
  request.options.epochs = epochs;
  request.options.batch_size = 2;
  request.options.seed = 3;
  for (int i = 0; i < 4; ++i) {
    request.pairs.push_back({.question = absl::StrCat("Which door has number ", i, "?"),
                             .answer = absl::StrCat("Door ", i * i)});
  }
  return request;
}

class Watcher : public TrainingSink {
 public:
  void OnReport(const TrainingReport& report) override { states.push_back(report.state); }
  void OnStep(const TrainingStep& step) override { steps.push_back(step); }
  void OnClosed(const absl::Status& status) override {
    closed = status;
    end.Notify();
  }
  std::vector<TrainingState> states;
  std::vector<TrainingStep> steps;
  absl::Status closed;
  TestEvent end;
};

class TrainingQueueTest : public ::testing::Test {
 protected:
  TrainingQueueTest() { Open({}); }
  ~TrainingQueueTest() override { Close(); }

  // As a start of the daemon does, on the store as it is.
  void Open(const TrainingQueueOptions& options) {
    Close();
    threads_ = std::make_unique<TestParts>();
    queue_ = std::make_unique<TrainingQueue>(TrainingParts{.engine = TinyEngine(),
                                                           .store = parts_.store.get(),
                                                           .intake = &intake_,
                                                           .loop = &threads_->loop,
                                                           .executor = &threads_->executor,
                                                           .timer = &threads_->timer,
                                                           .metrics = &parts_.metrics,
                                                           .log = &log_},
                                             options);
    queue_->Resume();
  }

  // As its end does.
  void Close() {
    if (!queue_) return;
    queue_->EndAll(absl::UnavailableError("the daemon stops"));
    threads_->StopThreads();
    queue_.reset();
  }

  TrainingReport Ended(const std::string& id) {
    const absl::Time end = absl::Now() + kPatience;
    while (true) {
      const auto report = queue_->Get(id);
      EXPECT_TRUE(report.ok()) << report.status();
      if (!report.ok() || report->has_ended() || absl::Now() > end) return *report;
      absl::SleepFor(absl::Milliseconds(2));
    }
  }

  void WaitForStep(const std::string& id, uint32_t step) {
    const absl::Time end = absl::Now() + kPatience;
    while (queue_->Get(id)->step < step && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  std::string Start(const std::string& document, TrainingRequest request) {
    const auto report = queue_->Start({"default", document}, std::move(request));
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->id : "";
  }

  TestParts parts_;
  Log log_{LogLevel::kError};
  AdapterIntake intake_{TinyEngine(), parts_.store.get(), &parts_.memories, 64};
  std::unique_ptr<TestParts> threads_;  // of the queue
  std::unique_ptr<TrainingQueue> queue_;
};

TEST_F(TrainingQueueTest, TheAdapterOfATrainingBecomesTheCurrentOneUnlessItShallOnlyBeStored) {
  parts_.Publish("d", {900'000});
  const TrainingReport first = Ended(Start("d", Pairs(3)));
  EXPECT_EQ(first.state, TrainingState::kSucceeded) << first.message;
  EXPECT_EQ(first.adapter_version, 1U);
  EXPECT_EQ(first.step, 6U);
  EXPECT_EQ(first.total_steps, 6U);
  EXPECT_EQ(first.qa_given, 4U);
  EXPECT_GT(first.tokens_per_second, 0.0);
  EXPECT_GE(first.ended, first.started);
  TrainingRequest second = Pairs(4);
  second.keep_current = true;
  EXPECT_EQ(Ended(Start("d", std::move(second))).adapter_version, 2U);

  const auto current = parts_.store->GetAdapter({"default", "d"}, 0);
  ASSERT_TRUE(current.ok());
  EXPECT_EQ(current->version, 1U);
  EXPECT_EQ(current->spec.training_job_id, first.id);
  EXPECT_EQ(current->spec.max_rank, 2U);
  EXPECT_FALSE(parts_.store->GetTrainingJob(1)->checkpoint);
}

TEST_F(TrainingQueueTest, EverySupervisionOfTheTextTrains) {
  parts_.Publish("d", {900'000});
  for (const auto supervision :
       {training::Supervision::kRawContext, training::Supervision::kContextContinuation}) {
    TrainingRequest request{.options = training::DefaultOptions(supervision)};
    request.options.epochs = 1;
    const TrainingReport report = Ended(Start("d", std::move(request)));
    EXPECT_EQ(report.state, TrainingState::kSucceeded) << report.message;
    EXPECT_GT(report.loss, 0.0);
  }
}

TEST_F(TrainingQueueTest, AModelThatWritesNoUsablePairsIsToldSo) {
  parts_.Publish("d", {900'000});
  TrainingRequest request;
  request.synthetic_pairs = 2;
  const TrainingReport report = Ended(Start("d", std::move(request)));
  EXPECT_EQ(report.state, TrainingState::kFailed);
  EXPECT_NE(report.message.find("pairs of your own"), std::string::npos) << report.message;
  EXPECT_EQ(report.qa_synthesized, 0U);
  EXPECT_GT(report.qa_dropped, 0U);
}

TEST_F(TrainingQueueTest, AWatcherHearsEveryStateAndEveryStepOnce) {
  parts_.Publish("d", {900'000});
  const std::string before = Start("d", Pairs(50));  // so that the next one waits
  const std::string id = Start("d", Pairs(3));
  const auto watcher = std::make_shared<Watcher>();
  ASSERT_TRUE(queue_->Watch(id, watcher).ok());
  ASSERT_TRUE(watcher->end.WaitFor(kPatience));
  EXPECT_TRUE(watcher->closed.ok());
  EXPECT_EQ(watcher->states, (std::vector{TrainingState::kQueued, TrainingState::kTraining,
                                          TrainingState::kSucceeded}));
  ASSERT_EQ(watcher->steps.size(), 6U);
  for (uint32_t i = 0; i < 6; ++i) EXPECT_EQ(watcher->steps[i].step, i + 1);

  const auto late = std::make_shared<Watcher>();
  ASSERT_TRUE(queue_->Watch(before, late).ok());
  EXPECT_EQ(late->states, std::vector{TrainingState::kSucceeded});
  EXPECT_TRUE(late->end.HasHappened());
}

TEST_F(TrainingQueueTest, CancelledOnesLeaveNothingAndTheNextOneRuns) {
  parts_.Publish("d", {900'000});
  const std::string running = Start("d", Pairs(1000));
  const std::string waiting = Start("d", Pairs(1000));
  const std::string last = Start("d", Pairs(2));
  WaitForStep(running, 2);
  for (const std::string& id : {waiting, running}) {
    const auto cancelled = queue_->Cancel(id);
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
    EXPECT_EQ(cancelled->state, TrainingState::kCancelled);
    EXPECT_TRUE(absl::IsFailedPrecondition(queue_->Cancel(id).status()));
  }
  EXPECT_EQ(Ended(last).state, TrainingState::kSucceeded);
  EXPECT_EQ(Ended(running).state, TrainingState::kCancelled);
  EXPECT_EQ(parts_.store->GetDocument({"default", "d"})->adapter_count, 1U);
  EXPECT_EQ(parts_.store->Stats()->checkpoint.items, 0U);
}

TEST_F(TrainingQueueTest, CancellingWhileTheDaemonStopsSaysThatItStops) {
  parts_.Publish("d", {900'000});
  const std::string running = Start("d", Pairs(400));
  const std::string waiting = Start("d", Pairs(1));
  WaitForStep(running, 1);
  queue_->EndAll(absl::UnavailableError("the daemon stops"));
  EXPECT_EQ(queue_->Cancel(running).status().message(), "the daemon stops");
  EXPECT_EQ(queue_->Cancel(waiting).status().message(), "the daemon stops");
  Open({});
  EXPECT_TRUE(queue_->Cancel(waiting).ok());
  EXPECT_TRUE(queue_->Cancel(running).ok());
}

TEST_F(TrainingQueueTest, AStopInTheMiddleLeadsToTheSameWeightsAsNone) {
  parts_.Publish("d", {900'000});
  Ended(Start("d", Pairs(40)));
  const std::string whole = parts_.store->GetAdapter({"default", "d"}, 1)->spec.hash;
  ASSERT_TRUE(parts_.store->SetCurrentAdapter({"default", "d"}, 0, 0).ok());
  ASSERT_TRUE(parts_.store->DeleteAdapter({"default", "d"}, 1).ok());

  const std::string id = Start("d", Pairs(40));
  const auto watcher = std::make_shared<Watcher>();
  ASSERT_TRUE(queue_->Watch(id, watcher).ok());
  WaitForStep(id, 10);
  Open({});
  EXPECT_TRUE(absl::IsUnavailable(watcher->closed));
  const TrainingReport resumed = Ended(id);
  EXPECT_EQ(resumed.state, TrainingState::kSucceeded) << resumed.message;
  EXPECT_EQ(parts_.store->GetAdapter({"default", "d"}, 0)->spec.hash, whole);
}

TEST_F(TrainingQueueTest, CheckpointsAreTakenWhileItTrains) {
  Open({.checkpoint_interval = absl::ZeroDuration()});
  parts_.Publish("d", {900'000});
  const std::string id = Start("d", Pairs(1000));
  const absl::Time end = absl::Now() + kPatience;
  while (!parts_.store->GetTrainingJob(1)->checkpoint && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(2));
  }
  EXPECT_TRUE(parts_.store->GetTrainingJob(1)->checkpoint);
  EXPECT_EQ(parts_.store->Stats()->checkpoint.items, 1U);

  // The document goes, and the training with it.
  ASSERT_TRUE(parts_.store->DeleteDocument({"default", "d"}, 0).ok());
  while (queue_->Get(id).ok() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(2));
  EXPECT_TRUE(absl::IsNotFound(queue_->Get(id).status()));
}

TEST_F(TrainingQueueTest, WhatCannotBeTrainedIsRefusedAtOnce) {
  const auto refusal = [this](const std::string& document, TrainingRequest request) {
    return queue_->Start({"default", document}, std::move(request)).status();
  };
  EXPECT_TRUE(absl::IsNotFound(refusal("none", Pairs(1))));
  parts_.Publish("d", {900'000});
  ASSERT_TRUE(parts_.store->UpdateDocument({"default", "d"}, 0, {.drop_text = true}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(refusal("d", Pairs(1))));
  parts_.Publish("e", {900'000});
  TrainingRequest high = Pairs(1);
  high.options.rank = 65;
  EXPECT_TRUE(absl::IsInvalidArgument(refusal("e", std::move(high))));
  for (const char* id : {"training-99", "x", ""}) {
    EXPECT_TRUE(absl::IsNotFound(queue_->Get(id).status())) << id;
    EXPECT_TRUE(absl::IsNotFound(queue_->Cancel(id).status())) << id;
    EXPECT_TRUE(absl::IsNotFound(queue_->Watch(id, std::make_shared<Watcher>()).status())) << id;
  }
}

TEST_F(TrainingQueueTest, AFullQueueSaysSo) {
  Open({.max_open = 2});
  parts_.Publish("d", {900'000});
  Start("d", Pairs(1000));
  Start("d", Pairs(1000));
  EXPECT_TRUE(absl::IsResourceExhausted(queue_->Start({"default", "d"}, Pairs(1)).status()));
}

}  // namespace
}  // namespace docmem::server
