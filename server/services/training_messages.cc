#include "server/services/training_messages.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/services/messages.h"

namespace docmem::server {
namespace {

using training::Supervision;

constexpr std::array kSupervisions = {
    std::pair{v1::SUPERVISION_SYNTHETIC_QA, Supervision::kSyntheticQa},
    std::pair{v1::SUPERVISION_RAW_CONTEXT, Supervision::kRawContext},
    std::pair{v1::SUPERVISION_CONTEXT_CONTINUATION, Supervision::kContextContinuation},
    std::pair{v1::SUPERVISION_CONTEXT_QA, Supervision::kContextQa}};

absl::StatusOr<Supervision> SupervisionOf(v1::Supervision value) {
  if (value == v1::SUPERVISION_UNSPECIFIED) return Supervision::kSyntheticQa;
  for (const auto& [message, supervision] : kSupervisions) {
    if (message == value) return supervision;
  }
  return InvalidField("options.supervision", absl::StrCat("unknown value ", value));
}

absl::Status TooMany(const std::string& field, uint32_t count, uint32_t limit) {
  return InvalidField(field, absl::StrCat("asks for ", count, " pairs, the limit is ", limit),
                      reason::kLimitExceeded);
}

absl::Status TakePairs(const v1::TrainingOptions& message, TrainingRequest* request) {
  if (message.qa_size() > kMaxQaPairs) {
    return TooMany("options.qa", static_cast<uint32_t>(message.qa_size()), kMaxQaPairs);
  }
  if (message.synthetic_pairs() > kMaxSyntheticPairs) {
    return TooMany("options.synthetic_pairs", message.synthetic_pairs(), kMaxSyntheticPairs);
  }
  if (message.has_synthetic_pairs()) request->synthetic_pairs = message.synthetic_pairs();
  for (int i = 0; i < message.qa_size(); ++i) {
    const v1::QaPair& pair = message.qa(i);
    const size_t longest = std::max(pair.question().size(), pair.answer().size());
    if (pair.question().empty() || pair.answer().empty() || longest > kMaxQaBytes) {
      return InvalidField(
          absl::StrCat("options.qa[", i, "]"),
          absl::StrCat("question and answer must have 1 to ", kMaxQaBytes, " bytes"));
    }
    request->pairs.push_back({.question = pair.question(), .answer = pair.answer()});
  }
  const bool qa = training::IsQa(request->options.supervision);
  if (!qa && (!request->pairs.empty() || request->synthetic_pairs.value_or(0) > 0)) {
    return InvalidField("options.qa", "pairs go with SYNTHETIC_QA and CONTEXT_QA only");
  }
  if (qa && request->pairs.empty() && request->synthetic_pairs == 0U) {
    return InvalidField("options.synthetic_pairs", "is 0, and 'qa' has no pairs either");
  }
  return absl::OkStatus();
}

absl::Status TakeModules(const v1::TrainingOptions& message, training::TrainingOptions* options) {
  if (message.modules().empty()) return absl::OkStatus();
  options->modules.clear();
  for (const std::string& name : message.modules()) {
    const std::optional<engine::Module> module = engine::ModuleFromName(name);
    if (!module) {
      return InvalidField("options.modules",
                          "must be some of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
                          "down_proj");
    }
    options->modules.push_back(*module);
  }
  return absl::OkStatus();
}

template <class Field, class Value>
void Take(bool set, Value value, Field* field) {
  if (set) *field = value;
}

v1::TrainingOptions OptionsMessage(const TrainingRequest& request) {
  const training::TrainingOptions& options = request.options;
  v1::TrainingOptions message;
  for (const auto& [value, supervision] : kSupervisions) {
    if (supervision == options.supervision) message.set_supervision(value);
  }
  if (request.synthetic_pairs) message.set_synthetic_pairs(*request.synthetic_pairs);
  message.set_rank(options.rank);
  message.set_alpha(options.alpha);
  for (const engine::Module module : options.modules) {
    message.add_modules(std::string(engine::ModuleName(module)));
  }
  message.set_dropout(options.dropout);
  message.set_rank_stabilised(options.rank_stabilised);
  message.set_epochs(options.epochs);
  message.set_learning_rate(options.learning_rate);
  message.set_warmup(options.warmup);
  message.set_weight_decay(options.weight_decay);
  message.set_max_gradient_norm(options.max_gradient_norm);
  message.set_batch_size(options.batch_size);
  message.set_accumulation(options.accumulation);
  message.set_holdout(options.holdout);
  message.set_patience(options.patience);
  message.set_seed(options.seed);
  message.set_recompute(options.recompute);
  message.set_keep_current(request.keep_current);
  return message;
}

v1::TrainingJob::State StateOf(TrainingState state) {
  switch (state) {
    case TrainingState::kQueued:
      return v1::TrainingJob::STATE_QUEUED;
    case TrainingState::kSynthesizing:
      return v1::TrainingJob::STATE_SYNTHESIZING;
    case TrainingState::kTraining:
      return v1::TrainingJob::STATE_TRAINING;
    case TrainingState::kSucceeded:
      return v1::TrainingJob::STATE_SUCCEEDED;
    case TrainingState::kFailed:
      return v1::TrainingJob::STATE_FAILED;
    case TrainingState::kCancelled:
      break;
  }
  return v1::TrainingJob::STATE_CANCELLED;
}

}  // namespace

absl::StatusOr<TrainingRequest> ToTrainingRequest(const v1::TrainingOptions& message) {
  const absl::StatusOr<Supervision> supervision = SupervisionOf(message.supervision());
  if (!supervision.ok()) return supervision.status();
  TrainingRequest request{.options = training::DefaultOptions(*supervision),
                          .keep_current = message.keep_current()};
  training::TrainingOptions& options = request.options;
  Take(message.has_rank(), message.rank(), &options.rank);
  Take(message.has_alpha(), message.alpha(), &options.alpha);
  Take(message.has_dropout(), message.dropout(), &options.dropout);
  Take(message.has_rank_stabilised(), message.rank_stabilised(), &options.rank_stabilised);
  Take(message.has_epochs(), message.epochs(), &options.epochs);
  Take(message.has_learning_rate(), message.learning_rate(), &options.learning_rate);
  Take(message.has_warmup(), message.warmup(), &options.warmup);
  Take(message.has_weight_decay(), message.weight_decay(), &options.weight_decay);
  Take(message.has_max_gradient_norm(), message.max_gradient_norm(), &options.max_gradient_norm);
  Take(message.has_batch_size(), message.batch_size(), &options.batch_size);
  Take(message.has_accumulation(), message.accumulation(), &options.accumulation);
  Take(message.has_holdout(), message.holdout(), &options.holdout);
  Take(message.has_patience(), message.patience(), &options.patience);
  Take(message.has_seed(), message.seed(), &options.seed);
  Take(message.has_recompute(), message.recompute(), &options.recompute);
  absl::Status status = TakeModules(message, &options);
  if (status.ok()) {
    status = CatchEngine([&] {
      training::ValidateOptions(options);
      return absl::OkStatus();
    });
  }
  if (status.ok()) status = TakePairs(message, &request);
  if (!status.ok()) return status;
  return request;
}

v1::TrainingJob ToMessage(const TrainingReport& report) {
  v1::TrainingJob job;
  job.set_id(report.id);
  job.set_collection(report.document.collection);
  job.set_document(report.document.id);
  job.set_state(StateOf(report.state));
  job.set_message(report.message);
  *job.mutable_options() = OptionsMessage(report.request);
  job.set_step(report.step);
  job.set_total_steps(report.total_steps);
  job.set_loss(report.loss);
  job.set_holdout_loss(report.holdout_loss.value_or(0.0));
  job.set_tokens_per_second(report.tokens_per_second);
  job.set_remaining_seconds(report.remaining_seconds);
  job.set_qa_given(report.qa_given);
  job.set_qa_synthesized(report.qa_synthesized);
  job.set_qa_dropped(report.qa_dropped);
  job.set_adapter_version(report.adapter_version);
  *job.mutable_create_time() = ToMessage(report.created);
  if (report.started != absl::InfinitePast()) {
    *job.mutable_start_time() = ToMessage(report.started);
  }
  if (report.ended != absl::InfinitePast()) *job.mutable_end_time() = ToMessage(report.ended);
  return job;
}

v1::TrainingStep ToMessage(const TrainingStep& step) {
  v1::TrainingStep message;
  message.set_step(step.step);
  message.set_total_steps(step.total_steps);
  message.set_loss(step.loss);
  if (step.holdout_loss) message.set_holdout_loss(*step.holdout_loss);
  message.set_learning_rate(step.learning_rate);
  message.set_gradient_norm(step.gradient_norm);
  message.set_tokens_per_second(step.tokens_per_second);
  message.set_remaining_seconds(step.remaining_seconds);
  return message;
}

}  // namespace docmem::server
