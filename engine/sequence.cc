#include "engine/sequence.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/formats/error.h"
#include "engine/model/transformer.h"

namespace docmem::engine {
namespace {

void RequireIds(const std::vector<int32_t>& ids, const char* field, int64_t vocab_size) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      ThrowInvalidArgument(field, "token id " + std::to_string(id) + " isn't in 0 … " +
                                      std::to_string(vocab_size - 1));
    }
  }
}

void RequirePositions(const SequenceRequest& request, int64_t max_positions) {
  const size_t answer = request.answer_ids.empty() ? request.max_tokens : request.answer_ids.size();
  const int64_t wanted =
      request.cache->next_position() + static_cast<int64_t>(request.prompt_ids.size() + answer);
  if (wanted > max_positions) {
    ThrowInvalidArgument(
        "prompt", std::to_string(request.cache->next_position()) + " positions of the context, " +
                      std::to_string(request.prompt_ids.size()) + " prompt tokens and " +
                      std::to_string(answer) + " answer tokens make " + std::to_string(wanted) +
                      ", the model has " + std::to_string(max_positions) + " positions");
  }
}

std::vector<int32_t> StopIds(const Engine& engine) {
  std::vector<int32_t> ids = engine.prompt_format().stop_ids();
  ids.insert(ids.end(), engine.config().eos_ids.begin(), engine.config().eos_ids.end());
  return ids;
}

int64_t MostRows(const SequenceRequest& request) {
  const auto prompt = static_cast<int64_t>(request.prompt_ids.size());
  const auto answer = static_cast<int64_t>(request.answer_ids.size());
  return prompt + (answer == 0 ? int64_t{request.max_tokens} : answer);
}

at::TensorOptions KvOptions(const Transformer& transformer) {
  return at::TensorOptions(transformer.device()).dtype(transformer.dtype());
}

}  // namespace

Sequence::Sequence(SequenceId id, SequenceRequest request, const Engine& engine)
    : id_(id),
      request_(std::move(request)),
      feed_(request_.prompt_ids),
      stop_ids_(StopIds(engine)),
      own_kv_(engine.config(), KvOptions(engine.transformer()), MostRows(request_)),
      sampler_(request_.sampling),
      decoder_(engine.tokenizer()),
      stop_matcher_(request_.stop_strings) {
  Validate(engine);
  if (scoring()) {
    feed_.insert(feed_.end(), request_.answer_ids.begin(), request_.answer_ids.end() - 1);
  }
}

void Sequence::Validate(const Engine& engine) const {
  if (request_.cache == nullptr) {
    ThrowInvalidArgument("cache", "is missing");
  }
  request_.cache->identity().RequireModel(engine.identity());
  request_.cache->identity().RequireAdapter(
      request_.adapter == nullptr ? std::string_view() : request_.adapter->content_hash());
  if (request_.prompt_ids.empty()) {
    ThrowInvalidArgument("prompt", "is empty");
  }
  if (!scoring() && request_.max_tokens == 0) {
    ThrowInvalidArgument("max_tokens", "must be at least 1");
  }
  if (request_.adapter != nullptr &&
      static_cast<int64_t>(request_.adapter->weights().layers.size()) != engine.config().layers) {
    ThrowFailedPrecondition("adapter", "was made for a model with another number of layers");
  }
  RequireIds(request_.prompt_ids, "prompt", engine.config().vocab_size);
  RequireIds(request_.answer_ids, "answer", engine.config().vocab_size);
  RequirePositions(request_, engine.config().max_positions);
}

std::span<const int32_t> Sequence::Waiting() const {
  return std::span(feed_).subspan(static_cast<size_t>(fed_));
}

int64_t Sequence::BaseRows(int64_t rows) const {
  if (request_.adapter == nullptr) {
    return rows;
  }
  const int64_t first =
      request_.scope == AdapterScope::kAnswerOnly ? PromptTokens() - 1 : int64_t{0};
  return std::clamp(first - fed_, int64_t{0}, rows);
}

int64_t Sequence::WantedRows(int64_t rows) const {
  return std::clamp(fed_ + rows - (PromptTokens() - 1), int64_t{0}, rows);
}

std::optional<SequenceEvent> Sequence::Advance(int64_t rows, const at::Tensor& logits) {
  fed_ += rows;
  own_kv_.Advance(rows);
  if (logits.size(0) == 0) {
    return std::nullopt;
  }
  SequenceEvent event;
  event.id = id_;
  if (scoring()) {
    Score(logits, &event);
  } else {
    Sample(logits[0], &event);
  }
  return event;
}

void Sequence::Score(const at::Tensor& logits, SequenceEvent* event) {
  for (int64_t row = 0; row < logits.size(0); ++row) {
    const int32_t id = request_.answer_ids[static_cast<size_t>(answered_++)];
    event->token_ids.push_back(id);
    event->logprobs.push_back(LogProbability(logits[row], id));
  }
  if (answered_ == static_cast<int64_t>(request_.answer_ids.size())) {
    event->finish = FinishReason::kScored;
  }
}

void Sequence::Sample(const at::Tensor& logits, SequenceEvent* event) {
  const SampledToken token = sampler_.Sample(logits);
  ++answered_;
  event->token_ids = {token.id};
  event->logprobs = {token.logprob};
  if (std::ranges::count(stop_ids_, token.id) > 0) {
    End(FinishReason::kEndOfTurn, event);
    return;
  }
  event->text = stop_matcher_.Push(decoder_.Push(token.id));
  if (stop_matcher_.matched()) {
    event->finish = FinishReason::kStopString;
  } else if (answered_ == int64_t{request_.max_tokens}) {
    End(FinishReason::kLength, event);
  } else {
    feed_.push_back(token.id);
  }
}

void Sequence::End(FinishReason reason, SequenceEvent* event) {
  event->finish = reason;
  event->text += stop_matcher_.Finish();
  const int64_t replaced = decoder_.replaced_bytes();
  decoder_.Finish();
  event->dropped_bytes = static_cast<uint32_t>(decoder_.replaced_bytes() - replaced);
}

}  // namespace docmem::engine
