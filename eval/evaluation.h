#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "eval/data_set.h"
#include "eval/document_run.h"
#include "eval/settings.h"

namespace docmem::eval {

/// How far an evaluation is.
struct Progress {
  double done = 0.0;    ///< 0 … 1 of what was left when it was started
  size_t document = 0;  ///< number of the one under way, from 1
  size_t documents = 0;
  std::string_view activity;
};

/// Called after every unit of work; throws as a `UnitHook`.
using OnProgress = std::function<void(const Progress&)>;

struct EvaluationRequest {
  std::shared_ptr<const engine::Engine> engine;
  Settings settings;
  std::vector<Document> documents;
  std::filesystem::path output;  ///< folder; made where it isn't there
};

struct Summary {
  size_t predictions = 0;  ///< in the file, earlier runs' included
  std::vector<Skipped> skipped;
};

/// Answers the questions of a data set in every mode, under the adapter of every supervision, at
/// every ratio. The output folder holds
///
///     run.json            what all predictions have in common
///     predictions.jsonl   one line per prediction
///     skipped.jsonl       documents and supervisions that weren't evaluated
///     documents/NAME/     see `AdapterMaker`
///
/// An evaluation that was interrupted is continued by another one with an equal request; on the CPU
/// its predictions file then has the same bytes as an undisturbed one's. Runs tensor work on the
/// calling thread, which mustn't be in inference mode.
///
/// Throws `kInvalidArgument` for settings; as `RequireSameRun` and `PredictionLog`; what engine and
/// training throw, with the document's id in the field.
Summary Evaluate(const EvaluationRequest& request, const OnProgress& on_progress);

}  // namespace docmem::eval
