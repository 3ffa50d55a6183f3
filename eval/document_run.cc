#include "eval/document_run.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/formats/digest.h"
#include "engine/formats/error.h"

namespace docmem::eval {
namespace {

// Shares of the work on a cell, for the progress bar; training an adapter counts as much as cells.
constexpr double kAdapterWork = 3.0;
constexpr double kIngestPart = 0.3;

// A folder's name for an id, which may hold anything.
std::string FolderName(const std::string& id) {
  constexpr size_t kReadable = 60, kDigits = 12;
  std::string name = id.substr(0, kReadable);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name + "-" + engine::Sha256Hex(id).substr(0, kDigits);
}

}  // namespace

DocumentRun::DocumentRun(const Workshop& workshop, const Document& document)
    : workshop_(workshop),
      engine_(*workshop.engine),
      document_(document),
      split_(SplitQuestions(document.questions.size(), workshop.settings)),
      all_cells_(CellsOf(workshop.settings)) {
  workshop_.log.RequireSameContent(document_);
  for (const Cell& cell : all_cells_) {
    if (!MissingRatios(cell).empty()) cells_.push_back(&cell);
  }
}

double DocumentRun::work() const {
  return static_cast<double>(document_.text.size()) * static_cast<double>(cells_.size());
}

PredictionKey DocumentRun::KeyOf(const Cell& cell, uint32_t ratio_ppm, size_t question) const {
  return {.document = document_.id,
          .question = question,
          .mode = cell.mode,
          .supervision = cell.supervision,
          .ratio_ppm = ratio_ppm};
}

std::vector<uint32_t> DocumentRun::MissingRatios(const Cell& cell) const {
  std::vector<uint32_t> missing;
  for (const uint32_t ratio : cell.ratios_ppm) {
    if (!std::ranges::all_of(split_.asked, [&](size_t question) {
          return workshop_.log.Has(KeyOf(cell, ratio, question));
        })) {
      missing.push_back(ratio);
    }
  }
  return missing;
}

bool DocumentRun::Encode() {
  size_t longest = 0;
  for (const size_t question : split_.asked) {
    const std::string asked = AskedText(document_.questions[question]);
    longest = std::max(longest, engine_.prompt_format().QuestionIds({}, "", asked).size());
  }
  try {
    context_ = engine_.EncodeContext(workshop_.settings.system_text, document_.text,
                                     static_cast<int64_t>(longest) + workshop_.settings.max_tokens);
    return true;
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kInvalidArgument) throw;
    too_long_ = error.what();
    return false;
  }
}

std::vector<Skipped> DocumentRun::Run(const UnitHook& on_unit) {
  if (!Encode()) return {{.document = document_.id, .reason = too_long_}};
  std::set<training::Supervision> supervisions;
  for (const Cell* cell : cells_) {
    if (cell->supervision) supervisions.insert(*cell->supervision);
  }
  const double total = 1.0 + kAdapterWork * static_cast<double>(supervisions.size()) +
                       static_cast<double>(cells_.size());
  double done = 0.0;
  const Stage stage = [&](double work) {
    UnitHook hook = Within(on_unit, done / total, (done + work) / total);
    done += work;
    return hook;
  };
  IngestForBase(stage(1.0));
  return EvaluateCells(stage);
}

std::vector<Skipped> DocumentRun::EvaluateCells(const Stage& stage) {
  const Subject subject = {.document = document_,
                           .context = context_,
                           .split = split_,
                           .folder = workshop_.documents / FolderName(document_.id)};
  std::filesystem::create_directories(subject.folder);
  std::vector<Skipped> skipped;
  std::optional<training::Supervision> current;
  for (const Cell* cell : cells_) {
    if (cell->supervision != current) {
      current = cell->supervision;
      adapter_ = workshop_.adapters.Make(subject, *current, stage(kAdapterWork));
      if (adapter_ == nullptr) {
        skipped.push_back({.document = document_.id,
                           .supervision = current,
                           .reason = "the base model wrote no acceptable pair to train on"});
      }
    }
    if (cell->supervision && adapter_ == nullptr) continue;
    Evaluate(*cell, stage(1.0));
  }
  return skipped;
}

DocumentRun::Caches DocumentRun::Ingest(const std::vector<uint32_t>& ratios_ppm,
                                        const engine::IngestionOptions& options,
                                        const UnitHook& on_unit) const {
  std::vector<engine::Compression> compressions;
  for (const uint32_t ratio : ratios_ppm) {
    compressions.push_back({.ratio_ppm = ratio,
                            .profile = workshop_.settings.profile,
                            .seed = workshop_.settings.seed});
  }
  Caches caches;
  if (compressions.empty()) return caches;
  const auto ingestion = engine_.StartIngestion(context_, std::move(compressions), options);
  while (!ingestion->Step()) on_unit("ingesting", ingestion->progress());
  auto made = ingestion->TakeCaches();
  for (size_t i = 0; i < made.size(); ++i) caches[ratios_ppm[i]] = std::move(made[i]);
  return caches;
}

void DocumentRun::IngestForBase(const UnitHook& on_unit) {
  std::set<uint32_t> ratios;
  for (const Cell* cell : cells_) {
    if (!engine::UsesBaseCache(cell->mode)) continue;
    const std::vector<uint32_t> missing = MissingRatios(*cell);
    ratios.insert(missing.begin(), missing.end());
  }
  base_caches_ = Ingest({ratios.begin(), ratios.end()}, {}, on_unit);
}

void DocumentRun::Evaluate(const Cell& cell, const UnitHook& on_unit) {
  const bool own = !engine::UsesBaseCache(cell.mode);
  const Caches written = own ? Ingest(MissingRatios(cell), {.mode = cell.mode, .adapter = adapter_},
                                      Within(on_unit, 0.0, kIngestPart))
                             : Caches();
  const std::vector<Asked> asked = Questions(cell, own ? written : base_caches_);
  std::vector<engine::SequenceRequest> requests;
  for (const Asked& one : asked) requests.push_back(one.request);
  const std::vector<Answer> answers =
      AnswerAll(workshop_.engine, requests, workshop_.settings.batch,
                Within(on_unit, own ? kIngestPart : 0.0, 1.0));
  std::vector<Json> lines;
  for (size_t i = 0; i < asked.size(); ++i) lines.push_back(Line(asked[i], answers[i]));
  workshop_.log.Append(lines);
}

std::vector<DocumentRun::Asked> DocumentRun::Questions(const Cell& cell,
                                                       const Caches& caches) const {
  std::vector<Asked> asked;
  for (const uint32_t ratio : MissingRatios(cell)) {
    for (size_t i = 0; i < split_.asked.size(); ++i) {
      const size_t index = split_.asked[i];
      Asked one{.key = KeyOf(cell, ratio, index), .seen = split_.seen[i]};
      if (workshop_.log.Has(one.key)) continue;
      one.request = {.cache = caches.at(ratio),
                     .adapter = engine::UsesAdapter(cell.mode) ? adapter_ : nullptr,
                     .prompt_ids = engine_.prompt_format().QuestionIds(
                         {}, "", AskedText(document_.questions[index])),
                     .max_tokens = workshop_.settings.max_tokens};
      asked.push_back(std::move(one));
    }
  }
  return asked;
}

Json DocumentRun::Line(const Asked& asked, const Answer& answer) const {
  const Question& question = document_.questions[asked.key.question];
  const engine::Cache& cache = *asked.request.cache;
  const engine::Adapter* adapter = asked.request.adapter.get();
  Json line = workshop_.common;
  line["training"] = nullptr;
  line["supervision"] = nullptr;
  if (asked.key.supervision) {
    const std::string name(training::SupervisionName(*asked.key.supervision));
    line["training"] = workshop_.common.at("training").at(name);
    line["supervision"] = name;
  }
  line["document"] = document_.id;
  line["document_digest"] = document_.digest;
  line["question"] = asked.key.question;
  line["question_text"] = question.text;
  line["references"] = question.answers;
  if (!question.options.empty()) {
    line["options"] = question.options;
    line["correct"] = question.correct;
  }
  line["seen"] = asked.seen;
  line["mode"] = engine::ModeName(asked.key.mode);
  line["ratio_ppm"] = asked.key.ratio_ppm;
  line["answer"] = answer.text;
  line["answer_tokens"] = answer.tokens;
  line["ended"] = answer.ended;
  line["cache"] = cache.identity().Digest();
  line["cache_profile"] = cache.identity().profile;
  line["cache_bytes"] = cache.bytes();
  line["context_tokens"] = cache.identity().context_tokens;
  line["head_tokens"] = cache.identity().head_tokens;
  line["kept_tokens"] = cache.kept_tokens();
  line["adapter"] = adapter == nullptr ? Json() : Json(adapter->content_hash());
  line["adapter_bytes"] = adapter == nullptr ? 0 : adapter->bytes();
  return line;
}

}  // namespace docmem::eval
