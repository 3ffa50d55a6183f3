#include "eval/settings.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/artifacts/number_text.h"
#include "engine/formats/error.h"
#include "training/order.h"

namespace docmem::eval {
namespace {

constexpr uint32_t kQuestionStream = 0;
constexpr uint32_t kMostTokens = 4096;

template <typename Value>
void RequireList(const char* option, const std::vector<Value>& values) {
  if (values.empty()) engine::ThrowInvalidArgument(option, "name at least one");
  if (std::set(values.begin(), values.end()).size() != values.size()) {
    engine::ThrowInvalidArgument(option, "names one twice");
  }
}

void RequireIn(const char* option, double value, double low, double high) {
  if (value >= low && value <= high) return;
  engine::ThrowInvalidArgument(option, engine::NumberText(value) + " isn't in " +
                                           engine::NumberText(low) + " … " +
                                           engine::NumberText(high));
}

template <typename Value>
void Change(const std::optional<Value>& change, Value* value) {
  if (change) *value = *change;
}

}  // namespace

uint32_t RatioPpm(double ratio) {
  const double ppm = ratio * engine::kRatioOnePpm;
  if (!(ratio >= 0.0 && ratio <= 1.0) || std::abs(ppm - std::round(ppm)) > 1e-6) {
    engine::ThrowInvalidArgument(
        "--ratios",
        engine::NumberText(ratio) + " isn't a number from 0 to 1 with at most six digits");
  }
  return static_cast<uint32_t>(std::lround(ppm));
}

void ValidateSettings(const Settings& settings) {
  RequireList("--modes", settings.modes);
  RequireList("--supervisions", settings.supervisions);
  RequireList("--ratios", settings.ratios_ppm);
  for (const uint32_t ratio : settings.ratios_ppm) {
    RequireIn("--ratios", ratio / 1e6, 0.0, 1.0);
  }
  RequireIn("--max-tokens", settings.max_tokens, 1, kMostTokens);
  RequireIn("--synthetic-pairs", static_cast<double>(settings.synthetic_pairs), 0, 100'000);
  RequireIn("--seen-part", settings.seen_part, 0.0, 1.0);
  RequireIn("--batch", static_cast<double>(settings.batch), 1, 4096);
  RequireIn("--checkpoint-seconds", settings.checkpoint_seconds, 0.0, 1e9);
  const bool adapters = std::ranges::any_of(settings.modes, engine::UsesAdapter);
  for (const training::Supervision supervision : settings.supervisions) {
    training::ValidateOptions(TrainingOptionsOf(settings, supervision));
    if (adapters && training::IsQa(supervision) && settings.synthetic_pairs == 0 &&
        settings.seen_part <= 0.0) {
      engine::ThrowInvalidArgument("--supervisions",
                                   std::string(training::SupervisionName(supervision)) +
                                       " needs --synthetic-pairs or --seen-part");
    }
  }
}

training::TrainingOptions TrainingOptionsOf(const Settings& settings,
                                            training::Supervision supervision) {
  training::TrainingOptions options = training::DefaultOptions(supervision);
  const TrainingChanges& changes = settings.training;
  Change(changes.rank, &options.rank);
  Change(changes.alpha, &options.alpha);
  Change(changes.epochs, &options.epochs);
  Change(changes.learning_rate, &options.learning_rate);
  Change(changes.dropout, &options.dropout);
  Change(changes.holdout, &options.holdout);
  Change(changes.patience, &options.patience);
  Change(changes.batch_size, &options.batch_size);
  Change(changes.accumulation, &options.accumulation);
  options.recompute = changes.recompute;
  options.seed = settings.seed;
  return options;
}

Split SplitQuestions(size_t questions, const Settings& settings) {
  std::vector<size_t> drawn = training::Shuffled(questions, settings.seed, kQuestionStream);
  if (settings.questions > 0 && settings.questions < drawn.size()) {
    drawn.resize(settings.questions);
  }
  auto seen =
      static_cast<size_t>(std::llround(settings.seen_part * static_cast<double>(drawn.size())));
  if (settings.seen_part > 0.0) seen = std::max<size_t>(seen, 1);
  if (drawn.size() >= 2) seen = std::min(seen, drawn.size() - 1);

  Split split{.asked = drawn};
  std::ranges::sort(split.asked);
  const std::set<size_t> first(drawn.begin(), drawn.begin() + static_cast<std::ptrdiff_t>(seen));
  for (const size_t question : split.asked) split.seen.push_back(first.contains(question));
  return split;
}

std::vector<Cell> CellsOf(const Settings& settings) {
  std::set<uint32_t> base = {engine::kRatioOnePpm};
  if (std::ranges::count(settings.modes, engine::Mode::kBase) > 0) {
    base.insert(settings.ratios_ppm.begin(), settings.ratios_ppm.end());
  }
  std::vector<Cell> cells = {{.ratios_ppm = {base.begin(), base.end()}}};
  const std::set<uint32_t> ratios(settings.ratios_ppm.begin(), settings.ratios_ppm.end());
  for (const training::Supervision supervision : settings.supervisions) {
    for (const engine::Mode mode : settings.modes) {
      if (!engine::UsesAdapter(mode)) continue;
      cells.push_back(
          {.supervision = supervision, .mode = mode, .ratios_ppm = {ratios.begin(), ratios.end()}});
    }
  }
  return cells;
}

}  // namespace docmem::eval
