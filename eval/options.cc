#include "eval/options.h"

#include <CLI/CLI.hpp>

#include <string_view>
#include <utility>
#include <vector>

#include "engine/formats/error.h"

namespace docmem::eval {
namespace {

// What the options are read into before they are looked at.
struct Texts {
  std::vector<std::string> modes;
  std::vector<std::string> supervisions;
  std::vector<double> ratios;
  std::string profile;
};

template <typename Value, typename FromName>
void ReadNames(const std::vector<std::string>& names, const char* option, FromName from_name,
               std::vector<Value>* values) {
  if (names.empty()) return;
  values->clear();
  for (const std::string& name : names) {
    const auto value = from_name(name);
    if (!value) engine::ThrowInvalidArgument(option, "there is no '" + name + "'; see --help");
    values->push_back(*value);
  }
}

void AddWhat(CLI::App* app, Invocation* invocation) {
  app->add_option("--model", invocation->engine.model_dir, "Model folder (Hugging Face layout)")
      ->required()
      ->type_name("FOLDER");
  app->add_option("--data", invocation->data, "Data set: JSON lines, see docs/evaluation.md")
      ->required()
      ->type_name("FILE");
  app->add_option("--output", invocation->output,
                  "Folder of predictions and adapters; what is there already is kept and not "
                  "computed again")
      ->required()
      ->type_name("FOLDER");
  app->add_option("--documents", invocation->documents, "Only the data set's first N; 0: all");
  app->add_option("--questions", invocation->settings.questions,
                  "Only N questions of each document, drawn by the seed; 0: all");
}

void AddProtocol(CLI::App* app, Settings* settings, Texts* texts) {
  app->add_option("--modes", texts->modes,
                  "BASE, BASE_KV_ADAPTER_DECODE, ADAPTER_PREFILL, BASE_SCORE_ADAPTER_PREFILL; "
                  "default: all")
      ->delimiter(',');
  app->add_option("--supervisions", texts->supervisions,
                  "SYNTHETIC_QA, RAW_CONTEXT, CONTEXT_CONTINUATION, CONTEXT_QA; default: all")
      ->delimiter(',');
  app->add_option("--ratios", texts->ratios,
                  "Fractions of the document's tokens to evict; default: "
                  "0,0.5,0.75,0.9,0.95,0.99,0.995,1")
      ->delimiter(',');
  app->add_option("--profile", texts->profile, "How tokens are chosen for eviction")
      ->default_str("compactor");
  app->add_option("--system-text", settings->system_text, "Instead of the prompt format's own");
  app->add_option("--max-tokens", settings->max_tokens, "Longest answer")->capture_default_str();
  app->add_option("--synthetic-pairs", settings->synthetic_pairs,
                  "Pairs per document that the base model writes for the QA supervisions")
      ->capture_default_str();
  app->add_option("--seen-part", settings->seen_part,
                  "Part of a document's questions that the QA supervisions train on")
      ->capture_default_str();
  app->add_option("--seed", settings->seed, "Of everything that is drawn")->capture_default_str();
}

void AddTraining(CLI::App* app, TrainingChanges* training) {
  app->add_option("--rank", training->rank, "Adapters' rank");
  app->add_option("--alpha", training->alpha, "Adapters' alpha; the scale is alpha/rank");
  app->add_option("--epochs", training->epochs, "Passes over the examples");
  app->add_option("--learning-rate", training->learning_rate, "Its peak");
  app->add_option("--dropout", training->dropout, "Of the adapters' inputs");
  app->add_option("--holdout", training->holdout, "Part held out for the early stop");
  app->add_option("--patience", training->patience, "Epochs without improvement until the stop");
  app->add_option("--batch-size", training->batch_size, "Sequences per micro-batch");
  app->add_option("--accumulation", training->accumulation, "Micro-batches per step");
  app->add_flag("--recompute", training->recompute, "Less memory, more time");
}

void AddHow(CLI::App* app, Invocation* invocation) {
  engine::EngineOptions& engine = invocation->engine;
  app->add_option("--device", engine.device, "cpu or cuda:N")->capture_default_str();
  app->add_option("--dtype", engine.dtype, "auto, float32, bfloat16 or int8")
      ->capture_default_str();
  app->add_option("--threads", engine.threads, "0: all cores")->capture_default_str();
  app->add_option("--prompt-format", engine.prompt_format,
                  "Built-in name or JSON file; default: from the model's chat template");
  app->add_option("--batch", invocation->settings.batch, "Questions that are answered at a time")
      ->capture_default_str();
  app->add_option("--checkpoint-seconds", invocation->settings.checkpoint_seconds,
                  "Between two checkpoints of a training")
      ->capture_default_str();
}

void ReadTexts(const Texts& texts, Settings* settings) {
  ReadNames(texts.modes, "--modes", engine::ModeFromName, &settings->modes);
  ReadNames(texts.supervisions, "--supervisions", training::SupervisionFromName,
            &settings->supervisions);
  if (!texts.ratios.empty()) settings->ratios_ppm.clear();
  for (const double ratio : texts.ratios) settings->ratios_ppm.push_back(RatioPpm(ratio));
  if (texts.profile.empty()) return;
  const auto profile = engine::ProfileFromName(texts.profile);
  if (!profile) engine::ThrowInvalidArgument("--profile", "there is no '" + texts.profile + "'");
  settings->profile = *profile;
}

}  // namespace

Invocation ReadCommandLine(int argc, const char* const* argv) {
  CLI::App app(
      "docmem-eval answers a data set's questions from compressed caches and trained adapters: in\n"
      "every mode, under every supervision, at every ratio. Interrupted, the same command goes on.",
      "docmem-eval");
  Invocation invocation;
  Texts texts;
  AddWhat(&app, &invocation);
  AddProtocol(&app, &invocation.settings, &texts);
  AddTraining(&app, &invocation.settings.training);
  AddHow(&app, &invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    invocation.print = app.help();
    return invocation;
  } catch (const CLI::ParseError& error) {
    engine::ThrowInvalidArgument("", std::string(error.what()) + "; see docmem-eval --help");
  }
  ReadTexts(texts, &invocation.settings);
  ValidateSettings(invocation.settings);
  return invocation;
}

}  // namespace docmem::eval
