#include "server/services/question_messages.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/services/messages.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

constexpr size_t kMaxInstructionBytes = 8192;
constexpr int kMaxTurns = 64;
constexpr int kMaxStopStrings = 16;
constexpr size_t kMaxStopBytes = 256;
constexpr uint32_t kDefaultMaxTokens = 256;

uint64_t Random64() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

absl::Status ReadMemory(Call& call, const v1::MemorySelection& memory, Question* question) {
  const std::string& collection =
      memory.collection().empty() ? kDefaultCollection : memory.collection();
  absl::Status status = CheckCollectionId(call, "memory.collection", collection);
  if (!status.ok()) return status;
  if (!memory.document().empty()) status = CheckId("memory.document", memory.document());
  if (!status.ok()) return status;
  call.About(collection, memory.document());
  question->document = {collection, memory.document()};

  question->mode = FromMessage(memory.mode());
  if (!question->mode && memory.mode() != v1::MODE_UNSPECIFIED) {
    return InvalidField("memory.mode", absl::StrCat("unknown value ", memory.mode()));
  }
  question->scope = FromMessage(memory.adapter_scope());
  if (!question->scope && memory.adapter_scope() != v1::ADAPTER_SCOPE_UNSPECIFIED) {
    return InvalidField("memory.adapter_scope",
                        absl::StrCat("unknown value ", memory.adapter_scope()));
  }
  question->profile = FromMessage(memory.profile());
  if (!question->profile && memory.profile() != v1::PROFILE_UNSPECIFIED) {
    return InvalidField("memory.profile", absl::StrCat("unknown value ", memory.profile()));
  }
  if (memory.has_ratio_ppm()) {
    status = CheckRatio("memory.ratio_ppm", memory.ratio_ppm());
    if (!status.ok()) return status;
    question->ratio_ppm = memory.ratio_ppm();
  } else if (question->profile || memory.build_if_missing()) {
    return InvalidField(question->profile ? "memory.profile" : "memory.build_if_missing",
                        "goes with memory.ratio_ppm only");
  }
  if (memory.has_cache_id()) {
    status = CheckId("memory.cache_id", memory.cache_id());
    if (!status.ok()) return status;
    question->cache_id = memory.cache_id();
  }
  question->build_if_missing = memory.build_if_missing();
  question->adapter_version = memory.adapter_version();
  question->allow_adapter_mismatch = memory.allow_adapter_mismatch();
  return absl::OkStatus();
}

absl::Status ReadPrompt(const v1::Prompt& prompt, Question* question) {
  absl::Status status = CheckText("prompt.question", prompt.question(), kMaxQuestionBytes);
  status.Update(CheckLength("prompt.instruction", prompt.instruction(), kMaxInstructionBytes));
  if (prompt.history_size() > kMaxTurns) {
    status.Update(InvalidField(
        "prompt.history", absl::StrCat("has ", prompt.history_size(), " turns, at most ", kMaxTurns,
                                       " are allowed")));
  }
  for (const v1::Turn& turn : prompt.history()) {
    status.Update(CheckText("prompt.history.question", turn.question(), kMaxQuestionBytes));
    status.Update(CheckLength("prompt.history.answer", turn.answer(), kMaxQuestionBytes));
    question->history.push_back({turn.question(), turn.answer()});
  }
  question->question = prompt.question();
  question->instruction = prompt.instruction();
  return status;
}

absl::Status ReadSampling(const v1::AskRequest& request, Question* question) {
  const v1::Sampling& sampling = request.sampling();
  question->max_tokens = request.max_tokens() == 0 ? kDefaultMaxTokens : request.max_tokens();
  question->sampling.temperature = sampling.temperature();
  question->sampling.top_p = sampling.top_p() == 0.0 ? 1.0 : sampling.top_p();
  question->sampling.top_k = sampling.top_k();
  question->sampling.seed = sampling.has_seed() ? sampling.seed() : Random64();
  const auto valid = CatchEngine([&] {
    engine::ValidateSampling(question->sampling);
    return true;
  });
  if (!valid.ok()) {
    const ErrorDetails details = store::DetailsOf(valid.status());
    return Error(valid.status().code(), reason::kInvalidField,
                 absl::StrCat("sampling.", std::string(valid.status().message())),
                 {{"field", "sampling." + details.at("field")}});
  }
  if (request.stop_size() > kMaxStopStrings) {
    return InvalidField("stop", absl::StrCat("at most ", kMaxStopStrings, " are allowed"));
  }
  for (const std::string& stop : request.stop()) {
    if (absl::Status status = CheckText("stop", stop, kMaxStopBytes); !status.ok()) {
      return status;
    }
    question->stop.push_back(stop);
  }
  return absl::OkStatus();
}

absl::Status ReadPriority(v1::Priority priority, Question* question) {
  switch (priority) {
    case v1::PRIORITY_UNSPECIFIED:
    case v1::PRIORITY_INTERACTIVE:
      question->priority = Priority::kInteractive;
      return absl::OkStatus();
    case v1::PRIORITY_BATCH:
      question->priority = Priority::kBatch;
      return absl::OkStatus();
    default:
      return InvalidField("priority", "is none of PRIORITY_INTERACTIVE and PRIORITY_BATCH");
  }
}

absl::Status ReadRequestId(Call& call, const std::string& request_id, Question* question) {
  if (request_id.empty()) {
    question->request_id = absl::StrCat(absl::Hex(Random64(), absl::kZeroPad16),
                                        absl::Hex(Random64(), absl::kZeroPad16));
    call.Named(question->request_id);
    return absl::OkStatus();
  }
  question->request_id = request_id;
  absl::Status status = CheckId("request_id", request_id);
  if (status.ok()) call.Named(request_id);
  return status;
}

}  // namespace

absl::StatusOr<Question> ToQuestion(const v1::AskRequest& request, Call& call) {
  Question question;
  question.principal = call.principal().name;
  question.limits = call.principal().limits;
  question.deadline = call.deadline();
  absl::Status status = ReadMemory(call, request.memory(), &question);
  status.Update(ReadPrompt(request.prompt(), &question));
  status.Update(ReadSampling(request, &question));
  status.Update(ReadPriority(request.priority(), &question));
  status.Update(ReadRequestId(call, request.request_id(), &question));
  if (!status.ok()) return status;
  return question;
}

absl::StatusOr<Question> ToQuestion(const v1::ScoreRequest& request, Call& call) {
  Question question;
  question.principal = call.principal().name;
  question.limits = call.principal().limits;
  question.deadline = call.deadline();
  absl::Status status = ReadMemory(call, request.memory(), &question);
  status.Update(ReadPrompt(request.prompt(), &question));
  status.Update(CheckText("answer", request.answer(), kMaxQuestionBytes));
  status.Update(ReadPriority(request.priority(), &question));
  status.Update(ReadRequestId(call, request.request_id(), &question));
  if (!status.ok()) return status;
  question.answer_to_score = request.answer();
  return question;
}

v1::Started ToMessage(const AnswerStarted& started) {
  v1::Started message;
  message.set_request_id(started.request_id);
  message.set_collection(started.document.collection);
  message.set_document(started.document.id);
  message.set_cache_id(started.cache_id);
  message.set_ratio_ppm(started.ratio_ppm);
  message.set_mode(ToMessage(started.mode));
  message.set_adapter_version(started.adapter_version);
  message.set_adapter_hash(started.adapter_hash);
  message.set_cache_tier(ToMessage(started.cache_tier));
  if (started.adapter_version != 0) message.set_adapter_tier(ToMessage(started.adapter_tier));
  *message.mutable_deadline() = ToMessage(started.deadline);
  return message;
}

v1::Progress ToMessage(const AnswerProgress& progress) {
  v1::Progress message;
  switch (progress.phase) {
    case AnswerProgress::Phase::kQueued:
      message.set_phase(v1::Progress::PHASE_QUEUED);
      break;
    case AnswerProgress::Phase::kLoading:
      message.set_phase(v1::Progress::PHASE_LOADING);
      break;
    case AnswerProgress::Phase::kBuildingCache:
      message.set_phase(v1::Progress::PHASE_BUILDING_CACHE);
      break;
  }
  message.set_queue_position(progress.queue_position);
  message.set_elapsed_seconds(absl::ToDoubleSeconds(progress.elapsed));
  return message;
}

void AppendLogProbabilities(const AnswerDelta& delta,
                            google::protobuf::RepeatedPtrField<v1::TokenLogProbability>* out) {
  for (size_t i = 0; i < delta.token_ids.size(); ++i) {
    v1::TokenLogProbability* const token = out->Add();
    token->set_token_id(static_cast<uint32_t>(delta.token_ids[i]));
    token->set_log_probability(delta.logprobs[i]);
  }
}

v1::Delta ToMessage(const AnswerDelta& delta, bool log_probabilities) {
  v1::Delta message;
  message.set_text(delta.text);
  message.set_tokens(static_cast<uint32_t>(delta.token_ids.size()));
  if (log_probabilities) AppendLogProbabilities(delta, message.mutable_log_probabilities());
  return message;
}

v1::QuerySeconds SecondsOf(const AnswerFinished& finished) {
  v1::QuerySeconds seconds;
  seconds.set_queue(absl::ToDoubleSeconds(finished.queue));
  seconds.set_load(absl::ToDoubleSeconds(finished.load));
  seconds.set_prefill(absl::ToDoubleSeconds(finished.prefill));
  seconds.set_decode(absl::ToDoubleSeconds(finished.decode));
  return seconds;
}

v1::Finished ToMessage(const AnswerFinished& finished) {
  v1::Finished message;
  switch (finished.reason) {
    case AnswerFinished::Reason::kEndOfTurn:
    case AnswerFinished::Reason::kScored:
      message.set_reason(v1::Finished::REASON_END_OF_TURN);
      break;
    case AnswerFinished::Reason::kStopString:
      message.set_reason(v1::Finished::REASON_STOP_STRING);
      break;
    case AnswerFinished::Reason::kLength:
      message.set_reason(v1::Finished::REASON_LENGTH);
      break;
  }
  message.set_prompt_tokens(finished.prompt_tokens);
  message.set_answer_tokens(finished.answer_tokens);
  message.set_document_tokens_prefilled(finished.document_tokens_prefilled);
  message.set_dropped_bytes(finished.dropped_bytes);
  *message.mutable_seconds() = SecondsOf(finished);
  message.set_first_token_seconds(absl::ToDoubleSeconds(finished.first_token));
  return message;
}

}  // namespace docmem::server
