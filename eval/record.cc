#include "eval/record.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/formats/digest.h"
#include "engine/formats/error.h"
#include "engine/formats/json_fields.h"

namespace docmem::eval {
namespace {

constexpr int kFormat = 1;
constexpr int64_t kMostQuestions = 1'000'000;

PredictionKey KeyOf(const engine::JsonFields& fields) {
  PredictionKey key{
      .document = fields.String("document"),
      .question = static_cast<size_t>(fields.Int("question", 0, kMostQuestions)),
      .ratio_ppm = static_cast<uint32_t>(fields.Int("ratio_ppm", 0, engine::kRatioOnePpm))};
  const auto mode = engine::ModeFromName(fields.String("mode"));
  if (!mode) engine::ThrowInvalidArgument(fields.Path("mode"), "is unknown");
  key.mode = *mode;
  if (const auto name = fields.OptionalString("supervision")) {
    key.supervision = training::SupervisionFromName(*name);
    if (!key.supervision) engine::ThrowInvalidArgument(fields.Path("supervision"), "is unknown");
  }
  return key;
}

}  // namespace

Json CommonFields(const engine::Engine& engine, const Settings& settings) {
  const engine::ModelIdentity& model = engine.identity();
  const engine::PromptFormat& format = engine.prompt_format();
  const std::string& system =
      settings.system_text.empty() ? format.default_system_text() : settings.system_text;
  Json training;
  for (const auto supervision :
       {training::Supervision::kSyntheticQa, training::Supervision::kRawContext,
        training::Supervision::kContextContinuation, training::Supervision::kContextQa}) {
    training[std::string(training::SupervisionName(supervision))] =
        Json::parse(training::OptionsJson(TrainingOptionsOf(settings, supervision)));
  }
  return {{"format", kFormat},
          {"model",
           {{"name", engine.config().name},
            {"dtype", model.dtype},
            {"weights_digest", model.weights_digest},
            {"config_digest", model.config_digest},
            {"tokenizer_digest", model.tokenizer_digest}}},
          {"prompt_format", {{"name", format.name()}, {"digest", format.digest()}}},
          {"system_text_digest", engine::Sha256Hex(system)},
          {"scope", engine::ScopeName(engine::AdapterScope::kQuestionAndAnswer)},
          {"profile", engine::ProfileName(settings.profile)},
          {"max_tokens", settings.max_tokens},
          {"questions_drawn", settings.questions},
          {"seen_part", settings.seen_part},
          {"synthetic_pairs", settings.synthetic_pairs},
          {"seed", settings.seed},
          {"training", training}};
}

void RequireSameRun(const std::filesystem::path& path, const Json& common) {
  if (!std::filesystem::exists(path)) {
    WriteDurably(path, common.dump(2) + "\n");
    return;
  }
  const Json stored = engine::ParseJson(ReadWhole(path), path.string());
  const engine::JsonFields fields(stored, path.string());
  for (const auto& [key, value] : common.items()) {
    const Json* before = fields.Find(key);
    if (before != nullptr && *before == value) continue;
    engine::ThrowFailedPrecondition(fields.Path(key),
                                    "was " + (before == nullptr ? "absent" : before->dump()) +
                                        " in the folder's evaluation and is now " + value.dump() +
                                        ": set it as it was, or choose another output folder");
  }
}

PredictionLog::PredictionLog(const std::filesystem::path& path) : log_(path) {
  size_t number = 0;
  for (const std::string& line : log_.TakeLines()) {
    const std::string place = path.string() + ":" + std::to_string(++number);
    try {
      Remember(engine::ParseJson(line, place));
    } catch (const engine::Error& error) {
      engine::ThrowDataLoss(place, std::string("isn't a prediction: ") + error.what());
    }
  }
}

void PredictionLog::Remember(const Json& prediction) {
  const engine::JsonFields fields(prediction, "");
  keys_.insert(KeyOf(fields));
  digests_[fields.String("document")] = fields.String("document_digest");
}

void PredictionLog::RequireSameContent(const Document& document) const {
  const auto found = digests_.find(document.id);
  if (found == digests_.end() || found->second == document.digest) return;
  engine::ThrowFailedPrecondition(
      "document " + document.id,
      "the folder's predictions are of another text or other questions: choose another output "
      "folder");
}

void PredictionLog::Append(const std::vector<Json>& predictions) {
  std::string lines;
  for (const Json& prediction : predictions) lines += prediction.dump() + "\n";
  log_.Append(lines);
  for (const Json& prediction : predictions) Remember(prediction);
}

}  // namespace docmem::eval
