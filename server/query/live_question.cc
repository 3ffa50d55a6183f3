#include "server/query/live_question.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/query/scheduler.h"

namespace docmem::server {
namespace {

AnswerFinished::Reason ReasonOf(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::kEndOfTurn:
      return AnswerFinished::Reason::kEndOfTurn;
    case engine::FinishReason::kStopString:
      return AnswerFinished::Reason::kStopString;
    case engine::FinishReason::kLength:
      return AnswerFinished::Reason::kLength;
    case engine::FinishReason::kScored:
      break;
  }
  return AnswerFinished::Reason::kScored;
}

}  // namespace

LiveQuestion::LiveQuestion(Scheduler* scheduler, Question question, uint64_t arrival,
                           std::shared_ptr<AnswerSink> sink)
    : scheduler_(scheduler),
      question_(std::move(question)),
      arrival_(arrival),
      quota_holders_{absl::StrCat("principal '", question_.principal, "'"),
                     absl::StrCat("collection '", question_.document.collection, "'")},
      admitted_(absl::Now()),
      turn_(admitted_ + scheduler->DelayOf(question_.priority)),
      sink_(std::move(sink)) {}

bool LiveQuestion::Advance(Stage to, absl::FunctionRef<void()> change) {
  store::MutexLock lock(&mutex_);
  if (ended_) return false;
  stage_.store(to, std::memory_order_relaxed);
  change();
  return true;
}

bool LiveQuestion::Update(absl::FunctionRef<void()> change) {
  store::MutexLock lock(&mutex_);
  if (ended_) return false;
  change();
  return true;
}

LiveQuestion::Stage LiveQuestion::MarkEnded(const absl::Status& status) {
  store::MutexLock lock(&mutex_);
  if (ended_) return Stage::kRetired;
  ended_ = true;
  end_status_ = status;
  return stage_.load(std::memory_order_relaxed);
}

absl::Status LiveQuestion::end_status() const {
  store::MutexLock lock(&mutex_);
  return end_status_;
}

bool LiveQuestion::Retire() {
  store::MutexLock lock(&mutex_);
  ended_ = true;
  return stage_.exchange(Stage::kRetired, std::memory_order_relaxed) != Stage::kRetired;
}

void LiveQuestion::Started(const AnswerStarted& started) {
  store::MutexLock lock(&sink_mutex_);
  if (sink_) sink_->OnStarted(started);
}

void LiveQuestion::Progress(const AnswerProgress& progress) {
  store::MutexLock lock(&sink_mutex_);
  if (sink_) sink_->OnProgress(progress);
}

void LiveQuestion::CloseSink(const absl::Status& status) {
  store::MutexLock lock(&sink_mutex_);
  if (sink_) std::exchange(sink_, nullptr)->OnClosed(status);
}

void LiveQuestion::OnEvent(const engine::SequenceEvent& event) {
  const absl::Time now = absl::Now();
  if (!event.token_ids.empty()) {
    if (first_token_ == absl::InfiniteFuture()) {
      first_token_ = now;
    } else {
      scheduler_->RecordTokenGap(now - last_token_);
    }
    last_token_ = now;
  }
  answer_tokens_ += static_cast<uint32_t>(event.token_ids.size());
  store::MutexLock lock(&sink_mutex_);
  if (!sink_) return;
  if (!event.text.empty() || !event.token_ids.empty()) {
    sink_->OnDelta({event.text, event.token_ids, event.logprobs});
  }
  if (event.finish) {
    finished_ = Finish(event);
    sink_->OnFinished(finished_);
  }
}

AnswerFinished LiveQuestion::Finish(const engine::SequenceEvent& event) {
  const absl::Time now = absl::Now();
  AnswerFinished finished;
  finished.reason = ReasonOf(*event.finish);
  finished.prompt_tokens = static_cast<uint32_t>(resolved.prompt_ids.size());
  finished.answer_tokens =
      answer_tokens_ - (*event.finish == engine::FinishReason::kEndOfTurn ? 1 : 0);
  finished.document_tokens_prefilled = document_tokens_prefilled;
  finished.dropped_bytes = event.dropped_bytes;
  finished.queue = (lease_time - admitted_) + (slot_time - load_time);
  finished.load = load_time - lease_time;
  finished.prefill = first_token_ - slot_time;
  finished.decode = now - first_token_;
  finished.first_token = first_token_ - admitted_;
  return finished;
}

void LiveQuestion::OnClosed(const absl::Status& status) {
  scheduler_->Retire(shared_from_this(), status);
}

}  // namespace docmem::server
