#include "training/synthesis.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "engine/formats/error.h"
#include "training/order.h"
#include "training/synthesis_prompt.h"
#include "training/words.h"

namespace docmem::training {
namespace {

constexpr int64_t kRounds = 3;
constexpr int64_t kMostDrafts = 16;  // sequences of one session
constexpr uint32_t kQuestionPart = 3;

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\"*";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// The first line's first question.
std::string QuestionIn(std::string_view draft) {
  draft = Trimmed(draft);
  constexpr std::string_view kLabel = "Question:";
  if (draft.starts_with(kLabel)) draft = Trimmed(draft.substr(kLabel.size()));
  draft = draft.substr(0, draft.find('\n'));
  const size_t mark = draft.find('?');
  return mark == std::string_view::npos ? "" : std::string(draft.substr(0, mark + 1));
}

}  // namespace

Synthesis::Synthesis(std::shared_ptr<const engine::Engine> engine, engine::Context context,
                     SynthesisOptions options, const std::vector<std::string>& known)
    : engine_(std::move(engine)),
      context_(std::move(context)),
      options_(options),
      chunks_(CutChunks(static_cast<int64_t>(context_.ids.size()) - context_.head_tokens,
                        options_.chunk_tokens)),
      session_(engine_) {
  if (chunks_.empty()) engine::ThrowInvalidArgument("document", "is empty");
  for (const std::string& question : known) known_.insert(Normalised(question));
  if (options_.pairs <= 0) stage_ = Stage::kDone;
}

Synthesis::~Synthesis() = default;

double Synthesis::progress() const {
  if (stage_ == Stage::kDone) return 1.0;
  const double by_pairs = static_cast<double>(counts_.kept) / static_cast<double>(options_.pairs);
  const double by_visits = static_cast<double>(std::max<int64_t>(visits_ - 1, 0)) /
                           (kRounds * static_cast<double>(chunks_.size()));
  return std::min(1.0, std::max(by_pairs, by_visits));
}

bool Synthesis::Step() {
  switch (stage_) {
    case Stage::kChunk:
      NextChunk();
      break;
    case Stage::kIngest:
      Ingest();
      break;
    case Stage::kQuestions:
    case Stage::kAnswers:
      RunSession();
      break;
    case Stage::kDone:
      break;
  }
  return stage_ == Stage::kDone;
}

void Synthesis::NextChunk() {
  const auto chunks = static_cast<int64_t>(chunks_.size());
  if (counts_.kept >= options_.pairs || visits_ == kRounds * chunks) {
    stage_ = Stage::kDone;
    return;
  }
  chunk_ = static_cast<size_t>(visits_ % chunks);
  // What is missing is spread over the chunks that this round has still to visit.
  const int64_t left = chunks - visits_ % chunks;
  const int64_t missing = options_.pairs - counts_.kept;
  drafts_.assign(static_cast<size_t>(std::min(kMostDrafts, (missing + left - 1) / left)), {});
  ++visits_;
  engine::Context context;
  context.head_tokens = context_.head_tokens;
  const auto head = context_.ids.begin() + context_.head_tokens;
  context.ids.assign(context_.ids.begin(), head);
  const auto first = head + chunks_[chunk_].first;
  context.ids.insert(context.ids.end(), first, first + chunks_[chunk_].tokens);
  ingestion_ = engine_->StartIngestion(std::move(context), {{.ratio_ppm = 0}});
  stage_ = Stage::kIngest;
}

void Synthesis::Ingest() {
  if (!ingestion_->Step()) return;
  cache_ = ingestion_->TakeCaches().front();
  ingestion_.reset();
  AskForQuestions();
}

void Synthesis::AskForQuestions() {
  for (size_t i = 0; i < drafts_.size(); ++i) {
    const std::string request(
        kQuestionRequests[static_cast<size_t>(counts_.drafts) % kQuestionRequests.size()]);
    const engine::SamplingOptions sampling = {
        .temperature = kQuestionTemperature,
        .top_p = kQuestionTopP,
        .seed = DerivedSeed(options_.seed, kQuestionPart, static_cast<uint32_t>(counts_.drafts))};
    ++counts_.drafts;
    running_[session_.Add({.cache = cache_,
                           .prompt_ids = engine_->prompt_format().QuestionIds({}, "", request),
                           .sampling = sampling,
                           .max_tokens = kQuestionTokens})] = i;
  }
  stage_ = Stage::kQuestions;
}

bool Synthesis::KeepQuestion(const std::string& draft, std::string* question) {
  *question = QuestionIn(draft);
  if (Normalised(*question).empty()) {
    ++counts_.empty;
    return false;
  }
  if (!known_.insert(Normalised(*question)).second) {
    ++counts_.duplicates;
    return false;
  }
  return true;
}

void Synthesis::AskQuestions() {
  std::vector<Draft> questions;
  for (const Draft& draft : drafts_) {
    Draft kept;
    if (KeepQuestion(draft.question, &kept.question)) questions.push_back(std::move(kept));
  }
  drafts_ = std::move(questions);
  for (size_t i = 0; i < drafts_.size(); ++i) {
    const auto ids = engine_->prompt_format().QuestionIds({}, "", drafts_[i].question);
    running_[session_.Add({.cache = cache_, .prompt_ids = ids, .max_tokens = kAnswerTokens})] = i;
  }
  stage_ = Stage::kAnswers;
  if (drafts_.empty()) Judge();
}

void Synthesis::Judge() {
  const auto document = std::span(context_.ids).subspan(static_cast<size_t>(context_.head_tokens));
  const Chunk& chunk = chunks_[chunk_];
  const auto source = ContentWords(engine_->tokenizer().Decode(
      document.subspan(static_cast<size_t>(chunk.first), static_cast<size_t>(chunk.tokens))));
  for (Draft& draft : drafts_) {
    const std::string answer(Trimmed(draft.answer));
    if (!draft.ended || Normalised(answer).empty()) {
      ++counts_.empty;
    } else if (SharedPart(ContentWords(answer), source) < kGroundedPart) {
      ++counts_.ungrounded;
    } else {
      ++counts_.kept;
      pairs_.push_back({.question = std::move(draft.question), .answer = answer, .chunk = chunk_});
    }
  }
  drafts_.clear();
  cache_.reset();
  stage_ = Stage::kChunk;
}

void Synthesis::RunSession() {
  const bool answering = stage_ == Stage::kAnswers;
  for (const engine::SequenceEvent& event : session_.Step()) {
    if (event.error) std::rethrow_exception(event.error);
    Draft& draft = drafts_[running_.at(event.id)];
    (answering ? draft.answer : draft.question) += event.text;
    if (event.finish) draft.ended = *event.finish == engine::FinishReason::kEndOfTurn;
  }
  if (session_.running() > 0) return;
  running_.clear();
  answering ? Judge() : AskQuestions();
}

}  // namespace docmem::training
