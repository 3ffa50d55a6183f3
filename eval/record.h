#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "eval/data_set.h"
#include "eval/files.h"
#include "eval/settings.h"

namespace docmem::eval {

using Json = nlohmann::json;

/// Names a prediction within an evaluation.
struct PredictionKey {
  std::string document;
  size_t question = 0;  ///< index in the data set
  engine::Mode mode = engine::Mode::kBase;
  std::optional<training::Supervision> supervision;
  uint32_t ratio_ppm = 0;

  auto operator<=>(const PredictionKey&) const = default;
};

/// What all predictions of an evaluation have in common and what they depend on: the model's
/// identity, prompt format, system text, profile, seed, numbers of questions and pairs, and the
/// training options of each supervision.
Json CommonFields(const engine::Engine& engine, const Settings& settings);

/// Stores `common` in `path`, or compares it with what is stored there. Throws
/// `kFailedPrecondition` naming the first field that differs.
void RequireSameRun(const std::filesystem::path& path, const Json& common);

/// Predictions in a file of JSON lines; docs/evaluation.md describes the fields. What an earlier
/// run has written stays and isn't computed again.
class PredictionLog {
 public:
  /// Throws as `LineLog`; `kDataLoss` with file and line for a line that isn't a prediction.
  explicit PredictionLog(const std::filesystem::path& path);

  bool Has(const PredictionKey& key) const { return keys_.contains(key); }
  size_t size() const { return keys_.size(); }

  /// Throws `kFailedPrecondition` if an earlier run asked a document of this id with other content.
  void RequireSameContent(const Document& document) const;

  /// Writes and syncs lines: each is one prediction's fields. Throws as `LineLog::Append`.
  void Append(const std::vector<Json>& predictions);

 private:
  void Remember(const Json& prediction);

  LineLog log_;
  std::set<PredictionKey> keys_;
  std::map<std::string, std::string> digests_;  // of documents, by id
};

}  // namespace docmem::eval
