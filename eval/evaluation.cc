#include "eval/evaluation.h"

#include <nlohmann/json.hpp>
#include <string>

#include "engine/formats/digest.h"
#include "engine/formats/error.h"
#include "eval/files.h"

namespace docmem::eval {
namespace {

constexpr const char* kRunFile = "run.json";
constexpr const char* kPredictionsFile = "predictions.jsonl";
constexpr const char* kSkippedFile = "skipped.jsonl";
constexpr const char* kDocumentsFolder = "documents";

std::vector<Skipped> RunOne(DocumentRun* run, const Document& document, const UnitHook& on_unit) {
  try {
    return run->Run(on_unit);
  } catch (const engine::Error& error) {
    if (error.kind() == engine::ErrorKind::kCancelled) throw;
    throw engine::Error(error.kind(), "document " + document.id, error.what());
  }
}

void WriteSkipped(const std::filesystem::path& path, const std::vector<Skipped>& skipped) {
  std::string lines;
  for (const Skipped& one : skipped) {
    const Json line = {
        {"document", one.document},
        {"supervision",
         one.supervision ? Json(training::SupervisionName(*one.supervision)) : Json()},
        {"reason", one.reason}};
    lines += line.dump() + "\n";
  }
  WriteDurably(path, lines);
}

double WorkOf(const Workshop& workshop, const std::vector<Document>& documents) {
  double work = 0.0;
  for (const Document& document : documents) work += DocumentRun(workshop, document).work();
  return work;
}

}  // namespace

Summary Evaluate(const EvaluationRequest& request, const OnProgress& on_progress) {
  ValidateSettings(request.settings);
  std::filesystem::create_directories(request.output);
  PredictionLog log(request.output / kPredictionsFile);
  const Json common = CommonFields(*request.engine, request.settings);
  RequireSameRun(request.output / kRunFile, common);
  const AdapterMaker adapters(request.engine, request.settings, engine::Sha256Hex(common.dump()));
  const Workshop workshop = {.engine = request.engine,
                             .settings = request.settings,
                             .common = common,
                             .adapters = adapters,
                             .log = log,
                             .documents = request.output / kDocumentsFolder};

  Summary summary;
  const double total = WorkOf(workshop, request.documents);
  double done = 0.0;
  Progress progress{.documents = request.documents.size()};
  for (const Document& document : request.documents) {
    ++progress.document;
    DocumentRun run(workshop, document);
    if (run.complete()) continue;
    const double work = run.work();
    const auto skipped = RunOne(&run, document, [&](std::string_view activity, double part) {
      progress.activity = activity;
      progress.done = (done + part * work) / total;
      on_progress(progress);
    });
    summary.skipped.insert(summary.skipped.end(), skipped.begin(), skipped.end());
    done += work;
  }
  WriteSkipped(request.output / kSkippedFile, summary.skipped);
  summary.predictions = log.size();
  return summary;
}

}  // namespace docmem::eval
