#include "server/query/scheduler.h"

#include <gtest/gtest.h>

#include "server/errors/error.h"
#include "server/query/scheduler_fixture.h"

namespace docmem::server {
namespace {

TEST_F(SchedulerTest, AQuestionIsAnsweredFromTheStoredCacheAlone) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler->Submit(Ask("d", "r"), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  ASSERT_TRUE(sink->status.ok()) << sink->status;
  EXPECT_EQ(sink->started->mode, engine::Mode::kBase);
  EXPECT_EQ(sink->started->ratio_ppm, 900'000U);
  EXPECT_EQ(sink->finished->document_tokens_prefilled, 0U);
  EXPECT_LE(sink->finished->answer_tokens, 6U);
  EXPECT_EQ(sink->tokens.size(), sink->logprobs.size());
  EXPECT_EQ(scheduler->Counts().running, 0U);
}

TEST_F(SchedulerTest, TheCurrentAdapterIsOnUnlessTheModeSaysBase) {
  const store::Document document = parts_.Publish("d", {0});
  const store::Adapter adapter = parts_.PublishAdapter(document.key, "all-modules");
  Scheduler* const scheduler = MakeScheduler();
  const auto with = std::make_shared<RecordingSink>();
  const auto base = std::make_shared<RecordingSink>();
  Question ask_base = Ask("d", "base");
  ask_base.mode = engine::Mode::kBase;
  ASSERT_TRUE(scheduler->Submit(Ask("d", "with"), with).ok());
  ASSERT_TRUE(scheduler->Submit(std::move(ask_base), base).ok());
  ASSERT_TRUE(with->WaitClosed());
  ASSERT_TRUE(base->WaitClosed());
  ASSERT_TRUE(with->status.ok()) << with->status;
  EXPECT_EQ(with->started->mode, engine::Mode::kBaseKvAdapterDecode);
  EXPECT_EQ(with->started->adapter_hash, adapter.spec.hash);
  EXPECT_EQ(base->started->adapter_version, 0U);
  EXPECT_NE(with->logprobs, base->logprobs);
}

TEST_F(SchedulerTest, ScoreGivesOneLogProbabilityPerTokenOfTheAnswerAndItsEnd) {
  parts_.Publish("d", {0});
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  Question question = Ask("d", "r");
  question.answer_to_score = "the lamp in room 7";
  ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  ASSERT_TRUE(sink->status.ok()) << sink->status;
  EXPECT_EQ(sink->tokens, TinyEngine()->prompt_format().AnswerIds("the lamp in room 7"));
  EXPECT_EQ(sink->finished->reason, AnswerFinished::Reason::kScored);
}

TEST_F(SchedulerTest, WhatTheRegistryLacksIsRefusedByName) {
  parts_.Publish("d", {900'000});
  Scheduler* const scheduler = MakeScheduler();
  struct Case {
    const char* reason;
    std::function<void(Question&)> change;
  };
  const Case cases[] = {
      {reason::kDocumentNotFound, [](Question& q) { q.document.id = "other"; }},
      {reason::kCollectionNotFound, [](Question& q) { q.document.collection = "other"; }},
      {reason::kLexicalIndexOff, [](Question& q) { q.document.id.clear(); }},
      {reason::kCacheNotFound, [](Question& q) { q.ratio_ppm = 500'000; }},
      {reason::kCacheNotFound, [](Question& q) { q.cache_id = "abc"; }},
      {reason::kAdapterNotFound, [](Question& q) { q.adapter_version = 3; }},
      {reason::kNoCurrentAdapter, [](Question& q) { q.mode = engine::Mode::kBaseKvAdapterDecode; }},
      {reason::kInvalidField,
       [](Question& q) {
         q.mode = engine::Mode::kBase;
         q.adapter_version = 1;
       }},
      {reason::kInvalidField,
       [](Question& q) {
         q.mode = engine::Mode::kAdapterPrefill;
         q.scope = engine::AdapterScope::kAnswerOnly;
       }},
      {reason::kNoCurrentAdapter, [](Question& q) { q.mode = engine::Mode::kAdapterPrefill; }},
      {reason::kContextTooLong, [](Question& q) { q.max_tokens = 4'000'000; }},
  };
  for (const Case& one : cases) {
    const auto sink = std::make_shared<RecordingSink>();
    Question question = Ask("d", "r");
    one.change(question);
    ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
    ASSERT_TRUE(sink->WaitClosed());
    EXPECT_EQ(store::ReasonOf(sink->status), one.reason) << sink->status;
    EXPECT_FALSE(sink->started.has_value());
  }
}

TEST_F(SchedulerTest, AQuestionWithoutADocumentGoesToTheOneThatFits) {
  const auto index = [](store::CollectionSettings& settings) {
    settings.lexical_index = true;
    return absl::OkStatus();
  };
  ASSERT_TRUE(parts_.store->UpdateCollection("default", 0, index).ok());
  for (const char* id : {"heron", "otter"}) parts_.Publish(id, {900'000});
  Scheduler* const scheduler = MakeScheduler();
  const auto fits = std::make_shared<RecordingSink>();
  Question question = Ask("", "r");
  question.question = "Where is the otter?";
  ASSERT_TRUE(scheduler->Submit(question, fits).ok());
  ASSERT_TRUE(fits->WaitClosed());
  ASSERT_TRUE(fits->status.ok()) << fits->status;
  EXPECT_EQ(fits->started->document, (store::DocumentKey{"default", "otter"}));

  const auto foreign = std::make_shared<RecordingSink>();
  question.question = "Who signed the treaty of Utrecht?";
  ASSERT_TRUE(scheduler->Submit(std::move(question), foreign).ok());
  ASSERT_TRUE(foreign->WaitClosed());
  EXPECT_EQ(store::ReasonOf(foreign->status), reason::kNoDocumentFits) << foreign->status;
  EXPECT_FALSE(foreign->started.has_value());
}

TEST_F(SchedulerTest, CachesOfOneRatioWithTwoSystemTextsMustBeChosenById) {
  const store::Document document = parts_.Publish("d", {900'000, 0});
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  Question question = Ask("d", "r");
  question.cache_id = document.caches[1].spec.id;
  ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  EXPECT_EQ(sink->started->ratio_ppm, 0U);
}

TEST_F(SchedulerTest, AMissingCacheIsBuiltFirstWhenAskedFor) {
  parts_.Publish("d", {900'000});
  build_missing_ = [](const CacheBuildRequest& request,
                      absl::AnyInvocable<void(absl::Status)> done) {
    EXPECT_EQ(request.key.id, "d");
    EXPECT_EQ(request.compressions.front().ratio_ppm, 500'000U);
    EXPECT_EQ(request.maker, CacheMaker{});
    done(absl::ResourceExhaustedError("no room"));
  };
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  Question question = Ask("d", "r");
  question.ratio_ppm = 500'000;
  question.build_if_missing = true;
  ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  EXPECT_EQ(sink->status, absl::ResourceExhaustedError("no room"));
}

TEST_F(SchedulerTest, TheBuiltCacheIsOfTheModeAndTheAdapterThatWereAdmitted) {
  const store::Document document = parts_.Publish("d", {900'000});
  parts_.PublishAdapter(document.key, "all-modules");
  build_missing_ = [&](const CacheBuildRequest& request,
                       absl::AnyInvocable<void(absl::Status)> done) {
    EXPECT_EQ(request.maker.mode, engine::Mode::kBaseScoreAdapterPrefill);
    EXPECT_EQ(request.maker.adapter_version, 1U);
    EXPECT_EQ(request.compressions.front().profile, engine::Profile::kKnorm);
    // Too late for this question, which then finds its own cache absent.
    EXPECT_EQ(parts_.PublishAdapter(document.key, "rslora").version, 2U);
    done(absl::OkStatus());
  };
  Scheduler* const scheduler = MakeScheduler();
  const auto sink = std::make_shared<RecordingSink>();
  Question question = Ask("d", "r");
  question.mode = engine::Mode::kBaseScoreAdapterPrefill;
  question.ratio_ppm = 500'000;
  question.profile = engine::Profile::kKnorm;
  question.build_if_missing = true;
  ASSERT_TRUE(scheduler->Submit(std::move(question), sink).ok());
  ASSERT_TRUE(sink->WaitClosed());
  EXPECT_EQ(store::ReasonOf(sink->status), reason::kCacheNotFound) << sink->status;
}

}  // namespace
}  // namespace docmem::server
