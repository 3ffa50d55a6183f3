#include "training/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>

#include "engine/artifacts/number_text.h"
#include "engine/formats/error.h"

namespace docmem::training {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"SYNTHETIC_QA", "RAW_CONTEXT",
                                                    "CONTEXT_CONTINUATION", "CONTEXT_QA"};

// Also refuses what isn't a number.
void RequireIn(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return;
  engine::ThrowInvalidArgument(field, engine::NumberText(value) + " isn't in " +
                                          engine::NumberText(low) + " … " +
                                          engine::NumberText(high));
}

void RequireModules(const std::vector<engine::Module>& modules) {
  if (modules.empty()) engine::ThrowInvalidArgument("modules", "name at least one");
  for (const engine::Module module : modules) {
    if (std::ranges::count(modules, module) > 1) {
      engine::ThrowInvalidArgument("modules",
                                   std::string(engine::ModuleName(module)) + " comes twice");
    }
  }
}

}  // namespace

std::string_view SupervisionName(Supervision supervision) {
  return kNames[static_cast<size_t>(supervision)];
}

std::optional<Supervision> SupervisionFromName(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Supervision>(found - kNames.begin());
}

TrainingOptions DefaultOptions(Supervision supervision) {
  TrainingOptions options{.supervision = supervision};
  if (!IsQa(supervision)) {
    options.batch_size = 1;
    options.accumulation = 4;
  }
  return options;
}

void ValidateOptions(const TrainingOptions& options) {
  constexpr double kTiny = 1e-12;  // stands for "above 0" in messages
  RequireIn("rank", options.rank, 1, kMaxTrainedRank);
  RequireIn("alpha", options.alpha, kTiny, 1e6);
  RequireModules(options.modules);
  RequireIn("dropout", options.dropout, 0.0, 0.99);
  RequireIn("epochs", options.epochs, 1, kMaxEpochs);
  RequireIn("learning_rate", options.learning_rate, kTiny, 1.0);
  RequireIn("warmup", options.warmup, 0.0, 1.0);
  RequireIn("weight_decay", options.weight_decay, 0.0, 1.0);
  RequireIn("max_gradient_norm", options.max_gradient_norm, 0.0, 1e6);
  RequireIn("batch_size", options.batch_size, 1, 1024);
  RequireIn("accumulation", options.accumulation, 1, 1024);
  RequireIn("holdout", options.holdout, 0.0, 0.5);
  RequireIn("patience", options.patience, 1, kMaxEpochs);
}

std::string OptionsJson(const TrainingOptions& options) {
  std::vector<std::string> modules;
  for (const engine::Module module : options.modules) {
    modules.emplace_back(engine::ModuleName(module));
  }
  const nlohmann::json json = {{"supervision", SupervisionName(options.supervision)},
                               {"rank", options.rank},
                               {"alpha", options.alpha},
                               {"modules", modules},
                               {"dropout", options.dropout},
                               {"rank_stabilised", options.rank_stabilised},
                               {"epochs", options.epochs},
                               {"learning_rate", options.learning_rate},
                               {"warmup", options.warmup},
                               {"weight_decay", options.weight_decay},
                               {"max_gradient_norm", options.max_gradient_norm},
                               {"batch_size", options.batch_size},
                               {"accumulation", options.accumulation},
                               {"holdout", options.holdout},
                               {"patience", options.patience},
                               {"seed", options.seed},
                               {"recompute", options.recompute}};
  return json.dump();
}

TrainingOptions OptionsFromJson(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    const auto supervision = SupervisionFromName(json.at("supervision").get<std::string>());
    std::vector<engine::Module> modules;
    for (const nlohmann::json& name : json.at("modules")) {
      modules.push_back(engine::ModuleFromName(name.get<std::string>()).value());
    }
    return {.supervision = supervision.value(),
            .rank = json.at("rank"),
            .alpha = json.at("alpha"),
            .modules = std::move(modules),
            .dropout = json.at("dropout"),
            .rank_stabilised = json.at("rank_stabilised"),
            .epochs = json.at("epochs"),
            .learning_rate = json.at("learning_rate"),
            .warmup = json.at("warmup"),
            .weight_decay = json.at("weight_decay"),
            .max_gradient_norm = json.at("max_gradient_norm"),
            .batch_size = json.at("batch_size"),
            .accumulation = json.at("accumulation"),
            .holdout = json.at("holdout"),
            .patience = json.at("patience"),
            .seed = json.at("seed"),
            .recompute = json.at("recompute")};
  } catch (const std::exception& error) {
    engine::ThrowDataLoss("options", std::string("can't be read: ") + error.what());
  }
}

double LoraScale(const TrainingOptions& options) {
  const double rank = options.rank;
  return options.alpha / (options.rank_stabilised ? std::sqrt(rank) : rank);
}

double LearningRate(const TrainingOptions& options, int64_t step, int64_t total_steps) {
  const auto warmup =
      static_cast<int64_t>(std::ceil(options.warmup * static_cast<double>(total_steps) - 1e-9));
  const auto part = [](int64_t done, int64_t of) {
    return static_cast<double>(done) / static_cast<double>(of);
  };
  if (step < warmup) return options.learning_rate * part(step + 1, warmup);
  const double progress = part(step - warmup, std::max<int64_t>(1, total_steps - warmup));
  return options.learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace docmem::training
