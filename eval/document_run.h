#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "eval/adapter_maker.h"
#include "eval/answering.h"
#include "eval/data_set.h"
#include "eval/record.h"
#include "eval/settings.h"
#include "eval/unit_hook.h"

namespace docmem::eval {

/// What wasn't evaluated, and why.
struct Skipped {
  std::string document;
  std::optional<training::Supervision> supervision;  ///< none: the whole document
  std::string reason;
};

/// What the runs of all documents share.
struct Workshop {
  std::shared_ptr<const engine::Engine> engine;
  const Settings& settings;
  const Json common;  ///< see `CommonFields`
  const AdapterMaker& adapters;
  PredictionLog& log;
  std::filesystem::path documents;  ///< folder of the documents' folders
};

/// Makes the predictions on one document that the log lacks: encodes it, makes caches and adapters
/// when they are needed, asks, and appends the answers cell by cell. One thread, which runs tensor
/// work.
class DocumentRun {
 public:
  /// Both must outlive it. Throws as `PredictionLog::RequireSameContent`.
  DocumentRun(const Workshop& workshop, const Document& document);

  bool complete() const { return cells_.empty(); }
  /// About how much there is to do, in any unit.
  double work() const;

  /// Does it, once. Returns what couldn't be evaluated: a document that doesn't fit the model's
  /// positions is never cut.
  std::vector<Skipped> Run(const UnitHook& on_unit);

 private:
  using Caches = std::map<uint32_t, std::shared_ptr<const engine::Cache>>;  // by ratio

  // The hook of the next share of the work.
  using Stage = std::function<UnitHook(double work)>;

  struct Asked {
    PredictionKey key;
    bool seen = false;
    engine::SequenceRequest request;
  };

  bool Encode();
  std::vector<uint32_t> MissingRatios(const Cell& cell) const;
  PredictionKey KeyOf(const Cell& cell, uint32_t ratio_ppm, size_t question) const;
  Caches Ingest(const std::vector<uint32_t>& ratios_ppm, const engine::IngestionOptions& options,
                const UnitHook& on_unit) const;
  void IngestForBase(const UnitHook& on_unit);
  std::vector<Skipped> EvaluateCells(const Stage& stage);
  void Evaluate(const Cell& cell, const UnitHook& on_unit);
  std::vector<Asked> Questions(const Cell& cell, const Caches& caches) const;
  Json Line(const Asked& asked, const Answer& answer) const;

  const Workshop& workshop_;
  const engine::Engine& engine_;
  const Document& document_;
  const Split split_;
  const std::vector<Cell> all_cells_;
  std::vector<const Cell*> cells_;  // those with missing answers
  std::string too_long_;
  engine::Context context_;
  Caches base_caches_;
  std::shared_ptr<const engine::Adapter> adapter_;  // of the cell under way
};

}  // namespace docmem::eval
