#include "client/evaluation.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "client/adapter_client.h"
#include "client/document_client.h"
#include "client/query_client.h"
#include "client/rouge.h"

namespace docmem::client {
namespace {

constexpr size_t kAtOnce = 8;
constexpr std::chrono::milliseconds kLook{100};

struct Outcome {
  absl::Status status;
  v1::Started started;
  double rouge_l = 0.0;
  double first_token_seconds = 0.0;
};

class Evaluator {
 public:
  Evaluator(std::shared_ptr<const Connection> connection, const EvaluationPlan& plan,
            CallOptions options)
      : connection_(std::move(connection)),
        plan_(plan),
        options_(std::move(options)),
        queries_(connection_),
        outcomes_(plan.questions.size() * plan.ways.size()) {}

  absl::Status AskAll(const std::function<void(size_t, size_t)>& progress) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(kAtOnce, outcomes_.size()); ++i) {
      threads.emplace_back([this] { AskSome(); });
    }
    while (answered_ < outcomes_.size() && !failed_) {
      if (progress) progress(answered_, outcomes_.size());
      std::this_thread::sleep_for(kLook);
    }
    threads.clear();
    for (const Outcome& outcome : outcomes_) {
      if (!outcome.status.ok()) return outcome.status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Evaluation> Result() const {
    v1::Evaluation evaluation;
    for (size_t way = 0; way < plan_.ways.size(); ++way) {
      absl::Status status = AddRow(way, &evaluation);
      if (!status.ok()) return status;
    }
    return evaluation;
  }

 private:
  void AskSome() {
    const size_t questions = plan_.questions.size();
    for (size_t i = next_++; i < outcomes_.size() && !failed_; i = next_++) {
      const EvaluationPlan::Question& question = plan_.questions[i % questions];
      const auto answer = queries_.Ask(RequestOf(plan_.ways[i / questions], question), options_);
      outcomes_[i].status = answer.status();
      if (!answer.ok()) {
        failed_ = true;
        return;
      }
      outcomes_[i].started = answer->started;
      outcomes_[i].rouge_l = BestRougeL(question.answers, answer->text);
      outcomes_[i].first_token_seconds = answer->finished.first_token_seconds();
      ++answered_;
    }
  }

  v1::AskRequest RequestOf(const EvaluationPlan::Way& way,
                           const EvaluationPlan::Question& question) const {
    v1::AskRequest request;
    v1::MemorySelection* memory = request.mutable_memory();
    memory->set_collection(plan_.collection);
    memory->set_document(plan_.document);
    memory->set_mode(way.mode);
    memory->set_ratio_ppm(way.ratio_ppm);
    memory->set_build_if_missing(plan_.build_if_missing);
    request.mutable_prompt()->set_question(question.text);
    request.mutable_prompt()->set_instruction(plan_.instruction);
    request.set_max_tokens(plan_.max_tokens);
    request.set_priority(v1::PRIORITY_BATCH);
    return request;
  }

  absl::Status AddRow(size_t way, v1::Evaluation* evaluation) const {
    const size_t questions = plan_.questions.size();
    double rouge_l = 0.0;
    double seconds = 0.0;
    for (size_t i = way * questions; i < (way + 1) * questions; ++i) {
      rouge_l += outcomes_[i].rouge_l;
      seconds += outcomes_[i].first_token_seconds;
    }
    const v1::Started& started = outcomes_[way * questions].started;
    const absl::StatusOr<uint64_t> bytes = BytesOf(started);
    if (!bytes.ok()) return bytes.status();
    v1::Evaluation::Row* row = evaluation->add_rows();
    row->set_mode(plan_.ways[way].mode);
    row->set_ratio_ppm(plan_.ways[way].ratio_ppm);
    row->set_questions(static_cast<uint32_t>(questions));
    row->set_rouge_l(rouge_l / static_cast<double>(questions));
    row->set_first_token_seconds(seconds / static_cast<double>(questions));
    row->set_memory_bytes(*bytes);
    if (started.adapter_version() != 0) evaluation->set_adapter_version(started.adapter_version());
    return absl::OkStatus();
  }

  // Of the cache and the adapter that answered.
  absl::StatusOr<uint64_t> BytesOf(const v1::Started& started) const {
    v1::GetDocumentRequest wanted;
    wanted.set_collection(plan_.collection);
    wanted.set_document(plan_.document);
    const auto document = DocumentClient(connection_).Get(wanted, options_);
    if (!document.ok()) return document.status();
    uint64_t bytes = 0;
    for (const v1::Cache& cache : document->caches()) {
      if (cache.id() == started.cache_id()) bytes += cache.device_bytes();
    }
    if (started.adapter_version() == 0) return bytes;
    v1::GetAdapterRequest version;
    version.set_collection(plan_.collection);
    version.set_document(plan_.document);
    version.set_version(started.adapter_version());
    const auto adapter = AdapterClient(connection_).Get(version, options_);
    if (!adapter.ok()) return adapter.status();
    return bytes + adapter->device_bytes();
  }

  const std::shared_ptr<const Connection> connection_;
  const EvaluationPlan& plan_;
  const CallOptions options_;
  QueryClient queries_;
  std::vector<Outcome> outcomes_;  // by way, then question; each written by one thread
  std::atomic<size_t> next_{0};
  std::atomic<size_t> answered_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace

absl::StatusOr<v1::Evaluation> Evaluate(const std::shared_ptr<const Connection>& connection,
                                        const EvaluationPlan& plan,
                                        const std::function<void(size_t, size_t)>& progress,
                                        const CallOptions& options) {
  if (plan.questions.empty() || plan.ways.empty()) {
    return absl::InvalidArgumentError("an evaluation needs questions and ways to ask them");
  }
  Evaluator evaluator(connection, plan, options);
  absl::Status status = evaluator.AskAll(progress);
  if (!status.ok()) return status;
  return evaluator.Result();
}

}  // namespace docmem::client
