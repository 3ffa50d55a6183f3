#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/artifacts/mode.h"
#include "engine/compression/profile.h"
#include "training/options.h"

namespace docmem::eval {

/// What differs from `training::DefaultOptions` of a supervision.
struct TrainingChanges {
  std::optional<uint32_t> rank, epochs, patience, batch_size, accumulation;
  std::optional<double> alpha, learning_rate, dropout, holdout;
  bool recompute = false;
};

/// What an evaluation computes. The lists may grow when it is continued; everything else is part of
/// each prediction and must stay (see record.h).
struct Settings {
  std::vector<engine::Mode> modes = {engine::Mode::kBase, engine::Mode::kBaseKvAdapterDecode,
                                     engine::Mode::kAdapterPrefill,
                                     engine::Mode::kBaseScoreAdapterPrefill};
  std::vector<training::Supervision> supervisions = {
      training::Supervision::kSyntheticQa, training::Supervision::kRawContext,
      training::Supervision::kContextContinuation, training::Supervision::kContextQa};
  std::vector<uint32_t> ratios_ppm = {0,       500'000, 750'000, 900'000,
                                      950'000, 990'000, 995'000, 1'000'000};

  std::string system_text;  ///< empty: the prompt format's own
  engine::Profile profile = engine::Profile::kCompactor;
  uint32_t max_tokens = 64;     ///< of an answer, end of turn included
  int64_t synthetic_pairs = 0;  ///< per document, by the base model, for the QA supervisions
  /// Part of a document's questions, 0 … 1, that are trained on in the QA supervisions: the seen
  /// ones.
  double seen_part = 0.0;
  size_t questions = 0;  ///< of each document, drawn by the seed; 0: all
  uint64_t seed = 0;     ///< of all that is drawn: questions, split, pairs, weights, sketch
  TrainingChanges training;

  // How it is computed; changes no answer on the CPU.
  int64_t batch = 64;              ///< sequences that are answered at a time
  double checkpoint_seconds = 60;  ///< between two checkpoints of a training
};

/// A ratio between 0 and 1 in millionths. Throws `kInvalidArgument` for another number, and for one
/// with more digits than six.
uint32_t RatioPpm(double ratio);

/// Throws `kInvalidArgument` with the option's name: an empty or repeated list, a value out of
/// range, a QA supervision without any pairs.
void ValidateSettings(const Settings& settings);

training::TrainingOptions TrainingOptionsOf(const Settings& settings,
                                            training::Supervision supervision);

/// Which questions of a document are asked, by index, rising; and which of these are seen.
struct Split {
  std::vector<size_t> asked;
  std::vector<bool> seen;  ///< one per asked question
};

/// A function of its arguments. Of two or more questions at least one is left unseen, and with a
/// `seen_part` above 0 at least one is seen.
Split SplitQuestions(size_t questions, const Settings& settings);

/// Answers of one kind: all ratios of a mode, under the adapter of a supervision.
struct Cell {
  std::optional<training::Supervision> supervision;  ///< none for `kBase`
  engine::Mode mode = engine::Mode::kBase;
  std::vector<uint32_t> ratios_ppm;
};

/// All kinds of answers in the order in which they are computed and written. The base model without
/// the document (ρ = 1) is always among them.
std::vector<Cell> CellsOf(const Settings& settings);

}  // namespace docmem::eval
