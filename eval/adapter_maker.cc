#include "eval/adapter_maker.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "engine/formats/digest.h"
#include "engine/formats/error.h"
#include "engine/formats/json_fields.h"
#include "eval/files.h"
#include "training/examples.h"
#include "training/synthesis.h"

namespace docmem::eval {
namespace {

namespace fs = std::filesystem;
using engine::Json;
using training::QaPair;
using training::Supervision;
using Clock = std::chrono::steady_clock;

constexpr const char* kPairsFile = "pairs.json";
constexpr const char* kCheckpointFile = "checkpoint";
constexpr const char* kTrainingFile = "training.json";
constexpr const char* kAdapterFiles[] = {"adapter_config.json", "adapter_model.safetensors"};
constexpr int64_t kMostChunks = 1'000'000;
constexpr double kPairsPart = 0.25;  // of the work on an adapter, for the progress bar

// A stored JSON object that was made from these inputs; nothing where there is none.
std::optional<Json> ReadMade(const fs::path& path, const std::string& inputs) {
  if (!fs::exists(path)) return std::nullopt;
  Json json = engine::ParseJson(ReadWhole(path), path.string());
  if (engine::JsonFields(json, path.string()).String("inputs") != inputs) {
    engine::ThrowFailedPrecondition(path.string(),
                                    "was made from another document or with other settings: "
                                    "delete its folder or choose another output folder");
  }
  return json;
}

std::vector<QaPair> PairsFrom(const Json& json, const std::string& path) {
  std::vector<QaPair> pairs;
  for (const Json& pair : engine::JsonFields(json, path).Array("pairs")) {
    const engine::JsonFields fields(pair, path + ".pairs");
    pairs.push_back({.question = fields.String("question"),
                     .answer = fields.String("answer"),
                     .chunk = static_cast<size_t>(fields.Int("chunk", 0, kMostChunks))});
  }
  return pairs;
}

Json JsonOf(const training::SynthesisCounts& counts) {
  return {{"drafts", counts.drafts},
          {"kept", counts.kept},
          {"empty", counts.empty},
          {"duplicates", counts.duplicates},
          {"ungrounded", counts.ungrounded}};
}

Json RecordOf(const training::Trainer& trainer) {
  const training::TrainingProgress progress = trainer.progress();
  return {{"examples", trainer.training_examples()},
          {"holdout_examples", trainer.holdout_examples()},
          {"steps", progress.step},
          {"trained_tokens", progress.trained_tokens},
          {"loss", progress.loss},
          {"holdout_loss", progress.holdout_loss ? Json(*progress.holdout_loss) : Json()}};
}

double PartDone(const training::TrainingProgress& progress) {
  return static_cast<double>(progress.step) / static_cast<double>(progress.total_steps);
}

std::string ReadIfThere(const fs::path& path) { return fs::exists(path) ? ReadWhole(path) : ""; }

}  // namespace

AdapterMaker::AdapterMaker(std::shared_ptr<const engine::Engine> engine, const Settings& settings,
                           std::string inputs)
    : engine_(std::move(engine)), settings_(settings), inputs_(std::move(inputs)) {}

std::string AdapterMaker::InputsOf(const Subject& subject) const {
  return engine::Sha256Hex(inputs_ + subject.document.digest);
}

std::shared_ptr<const engine::Adapter> AdapterMaker::Make(const Subject& subject,
                                                          Supervision supervision,
                                                          const UnitHook& on_unit) const {
  const fs::path folder = subject.folder / training::SupervisionName(supervision);
  const auto made = ReadMade(folder / kTrainingFile, InputsOf(subject));
  if (!made) return Train(subject, supervision, folder, on_unit);
  engine::PeftFolder files;
  for (const char* name : kAdapterFiles) files[name] = ReadWhole(folder / name);
  auto adapter = Load(files);
  const std::string hash = engine::JsonFields(*made, folder.string()).String("adapter");
  if (adapter->content_hash() != hash) {
    engine::ThrowDataLoss(folder.string(), "the adapter's files aren't those that were written");
  }
  return adapter;
}

std::shared_ptr<const engine::Adapter> AdapterMaker::Train(const Subject& subject,
                                                           Supervision supervision,
                                                           const fs::path& folder,
                                                           const UnitHook& on_unit) const {
  const std::vector<QaPair> pairs = training::IsQa(supervision)
                                        ? Pairs(subject, Within(on_unit, 0.0, kPairsPart))
                                        : std::vector<QaPair>();
  if (training::IsQa(supervision) && pairs.empty()) return nullptr;
  fs::create_directories(folder);
  const fs::path checkpoint = folder / kCheckpointFile;
  training::Trainer trainer(
      engine_, TrainingOptionsOf(settings_, supervision),
      training::MakeExamples(supervision,
                             {.engine = *engine_, .context = subject.context, .pairs = pairs}),
      ReadIfThere(checkpoint));
  RunTraining(&trainer, checkpoint, Within(on_unit, kPairsPart, 1.0));

  const engine::PeftFolder files = trainer.Export();
  auto adapter = Load(files);
  for (const auto& [name, bytes] : files) WriteDurably(folder / name, bytes);
  Json record = RecordOf(trainer);
  record["inputs"] = InputsOf(subject);
  record["pairs"] = pairs.size();
  record["adapter"] = adapter->content_hash();
  WriteDurably(folder / kTrainingFile, record.dump(2) + "\n");
  fs::remove(checkpoint);
  return adapter;
}

void AdapterMaker::RunTraining(training::Trainer* trainer, const fs::path& checkpoint,
                               const UnitHook& on_unit) const {
  auto saved = Clock::now();
  const auto save = [&] {
    WriteDurably(checkpoint, trainer->Checkpoint());
    saved = Clock::now();
  };
  try {
    while (true) {
      const training::TrainingEvent event = trainer->Step();
      if (event == training::TrainingEvent::kFinished) return;
      const std::chrono::duration<double> since = Clock::now() - saved;
      if (event == training::TrainingEvent::kStep &&
          since.count() >= settings_.checkpoint_seconds) {
        save();
      }
      on_unit("training", PartDone(trainer->progress()));
    }
  } catch (const engine::Error& error) {
    if (error.kind() == engine::ErrorKind::kCancelled) save();
    throw;
  }
}

std::vector<QaPair> AdapterMaker::Pairs(const Subject& subject, const UnitHook& on_unit) const {
  std::vector<QaPair> pairs;
  if (settings_.synthetic_pairs > 0) pairs = SyntheticPairs(subject, on_unit);
  for (size_t i = 0; i < subject.split.asked.size(); ++i) {
    if (!subject.split.seen[i]) continue;
    const Question& question = subject.document.questions[subject.split.asked[i]];
    pairs.push_back({.question = AskedText(question), .answer = TaughtAnswer(question)});
  }
  return pairs;
}

std::vector<QaPair> AdapterMaker::SyntheticPairs(const Subject& subject,
                                                 const UnitHook& on_unit) const {
  const fs::path path = subject.folder / kPairsFile;
  if (const auto made = ReadMade(path, InputsOf(subject))) return PairsFrom(*made, path.string());
  // The data set's own questions mustn't become training pairs by chance.
  std::vector<std::string> known;
  for (const Question& question : subject.document.questions) known.push_back(question.text);
  training::Synthesis synthesis(engine_, subject.context,
                                {.pairs = settings_.synthetic_pairs, .seed = settings_.seed},
                                known);
  while (!synthesis.Step()) on_unit("writing pairs", synthesis.progress());
  Json pairs = Json::array();
  for (const QaPair& pair : synthesis.pairs()) {
    pairs.push_back(
        {{"question", pair.question}, {"answer", pair.answer}, {"chunk", pair.chunk.value_or(0)}});
  }
  const Json record = {{"inputs", InputsOf(subject)},
                       {"counts", JsonOf(synthesis.counts())},
                       {"pairs", std::move(pairs)}};
  WriteDurably(path, record.dump(2) + "\n");
  return synthesis.pairs();
}

std::shared_ptr<const engine::Adapter> AdapterMaker::Load(const engine::PeftFolder& folder) const {
  const auto file = std::make_shared<const std::string>(
      engine_->Pack(folder, training::kMaxTrainedRank, /*allow_other_base=*/false).file);
  return engine_->LoadAdapter({.owner = file, .bytes = std::as_bytes(std::span(*file))});
}

}  // namespace docmem::eval
