#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands.h"
#include "client/cli/document_view.h"
#include "client/cli/names.h"
#include "client/cli/progress_line.h"
#include "client/cli/qa_file.h"
#include "client/cli/question_arguments.h"
#include "client/cli/ratio.h"
#include "client/cli/session.h"
#include "client/document_client.h"
#include "client/evaluation.h"

namespace docmem::cli {
namespace {

// Comma separated.
Value Modes(std::vector<v1::Mode>* target) {
  return {.placeholder = "MODE,...",
          .choices = NamesOf(*v1::Mode_descriptor()),
          .assign = [target](const std::string& text) {
            for (const auto& part : absl::StrSplit(text, ',')) {
              const auto number = ParseName(*v1::Mode_descriptor(), std::string(part));
              if (!number.ok()) return number.status();
              target->push_back(static_cast<v1::Mode>(*number));
            }
            return absl::OkStatus();
          }};
}

class EvalCommand final : public Command {
 public:
  EvalCommand() : Command("eval", "Ask given questions in several ways and compare the answers") {
    Describe(
        "Asks every question at each ratio in each mode, scores the answers with ROUGE-L against "
        "the given ones, and stores the table with the document, where docmem show finds it.");
    arguments().Positional(Text("ID", &plan_.document), "The document");
    DeclareCollection(&arguments(), &plan_.collection);
    arguments().Option("--qa", Path("FILE", &qa_file_), kQaFileHelp).required = true;
    arguments().Option("--ratio", Ratios(&ratios_), "Ratios; else those of the stored caches");
    arguments().Option("--mode", Modes(&modes_),
                       "Modes; else base, and base-kv-adapter-decode where there is an adapter");
    arguments().Option("--max-tokens", Number("N", &plan_.max_tokens), "Of each answer; else 64");
    DeclareInstruction(&arguments(), &plan_.instruction);
    arguments().Flag("--build", &plan_.build_if_missing, "Build caches that are missing");
    arguments().Flag("--no-store", &no_store_, "Only print the table");
  }

  absl::Status Run(Session& session) override {
    absl::StatusOr<QaFile> qa = ReadQaFile(qa_file_, session.environment());
    if (!qa.ok()) return qa.status();
    for (QaFile::Item& item : qa->items) {
      plan_.questions.push_back({std::move(item.question), std::move(item.answers)});
    }
    client::DocumentClient documents(session.connection());
    v1::GetDocumentRequest get;
    get.set_collection(plan_.collection);
    get.set_document(plan_.document);
    absl::StatusOr<v1::Document> document = documents.Get(get, session.call());
    if (!document.ok()) return document.status();
    ChooseWays(*document);
    absl::StatusOr<v1::Evaluation> evaluation = Ask(session);
    if (!evaluation.ok()) return evaluation.status();
    evaluation->set_questions_digest(qa->sha256);
    if (!no_store_) {
      v1::SetEvaluationRequest stored;
      stored.set_collection(plan_.collection);
      stored.set_document(plan_.document);
      *stored.mutable_evaluation() = *evaluation;
      document = documents.SetEvaluation(stored, session.call());
      if (document.ok()) evaluation = document->evaluation();
      if (!document.ok()) return document.status();
    }
    return session.Show(evaluation,
                        [&](const v1::Evaluation& done) { PrintEvaluation(done, session.out()); });
  }

 private:
  void ChooseWays(const v1::Document& document) {
    if (ratios_.empty()) {
      for (const v1::Cache& cache : document.caches()) ratios_.push_back(cache.ratio_ppm());
      std::ranges::sort(ratios_);
      ratios_.erase(std::unique(ratios_.begin(), ratios_.end()), ratios_.end());
    }
    if (modes_.empty()) {
      modes_.push_back(v1::MODE_BASE);
      if (document.current_adapter_version() != 0) {
        modes_.push_back(v1::MODE_BASE_KV_ADAPTER_DECODE);
      }
    }
    for (const v1::Mode mode : modes_) {
      for (const uint32_t ratio : ratios_) plan_.ways.push_back({mode, ratio});
    }
  }

  absl::StatusOr<v1::Evaluation> Ask(const Session& session) const {
    ProgressLine line(session.terminal());
    return client::Evaluate(
        session.connection(), plan_,
        [&](size_t answered, size_t all) {
          line.ShowBar("asking", static_cast<double>(answered) / static_cast<double>(all),
                       absl::StrCat(answered, " of ", all));
        },
        session.call());
  }

  client::EvaluationPlan plan_;
  std::string qa_file_;
  std::vector<uint32_t> ratios_;
  std::vector<v1::Mode> modes_;
  bool no_store_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeEvalCommand() { return std::make_unique<EvalCommand>(); }

}  // namespace docmem::cli
