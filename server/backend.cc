#include "server/backend.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "engine/formats/error.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/ingest/builder.h"
#include "server/jobs/training_queue.h"
#include "server/memory_plan.h"
#include "server/query/scheduler.h"
#include "server/runtime/engine_loop.h"
#include "server/runtime/memories.h"

namespace docmem::server {
namespace {

constexpr char kDtypeSetting[] = "dtype";
constexpr char kDigestMemo[] = "model-digests.json";

using EnginePtr = std::shared_ptr<const engine::Engine>;

// Tells a question that its cache is there now.
class MissingCacheSink : public BuildSink {
 public:
  explicit MissingCacheSink(absl::AnyInvocable<void(absl::Status)> done) : done_(std::move(done)) {}
  void OnProgress(const BuildProgress&) override {}
  void OnClosed(const absl::StatusOr<BuildResult>& result) override { done_(result.status()); }
  void Refused(const absl::Status& status) { done_(status); }

 private:
  absl::AnyInvocable<void(absl::Status)> done_;
};

class BackendImpl : public Backend {
 public:
  BackendImpl(const ServerOptions& options, const Parts& parts, EnginePtr engine, ModelFacts model)
      : model_(std::move(model)),
        memories_(engine, parts.store, parts.loaders, parts.metrics,
                  {.device_budget_bytes = options.device_budget_bytes,
                   .host_budget_bytes = options.host_budget_bytes,
                   .unload_policy = options.unload_policy}),
        loop_(engine, parts.metrics, LoopOptions(options)),
        builder_({.engine = engine,
                  .store = parts.store,
                  .memories = &memories_,
                  .loop = &loop_,
                  .timer = parts.timer,
                  .executor = parts.executor,
                  .metrics = parts.metrics},
                 {.question_reserve_tokens = options.question_reserve}),
        scheduler_({.engine = engine,
                    .store = parts.store,
                    .memories = &memories_,
                    .loop = &loop_,
                    .timer = parts.timer,
                    .executor = parts.executor,
                    .metrics = parts.metrics,
                    .build_missing =
                        [this](CacheBuildRequest request, auto done) {
                          BuildMissing(std::move(request), std::move(done));
                        }},
                   {.max_queue = options.max_queue,
                    .max_sequences = options.max_sequences,
                    .kv_budget_bytes = options.kv_budget_bytes}),
        intake_(engine, parts.store, &memories_, options.max_adapter_rank),
        archives_(
            {.engine = engine, .store = parts.store, .residency = &memories_, .intake = &intake_}),
        trainings_({.engine = engine,
                    .store = parts.store,
                    .intake = &intake_,
                    .loop = &loop_,
                    .executor = parts.executor,
                    .timer = parts.timer,
                    .metrics = parts.metrics,
                    .log = parts.log},
                   {.max_rank = std::min(options.max_adapter_rank, training::kMaxTrainedRank),
                    .question_reserve_tokens = options.question_reserve,
                    .checkpoint_interval = absl::Seconds(options.checkpoint_seconds)}) {}

  /// See `TrainingQueue::Resume`.
  void ResumeTrainings() { trainings_.Resume(); }

  Residency* residency() override { return &memories_; }
  Asker* asker() override { return &scheduler_; }
  Builds* builds() override { return &builder_; }
  AdapterIntake* intake() override { return &intake_; }
  Archives* archives() override { return &archives_; }
  Trainings* trainings() override { return &trainings_; }
  const ModelFacts* model() const override { return &model_; }

  QueueFacts Queue() const override {
    const QueueCounts counts = scheduler_.Counts();
    return {.waiting = counts.waiting,
            .loading = counts.loading,
            .running = counts.running,
            .building = builder_.builds()};
  }
  absl::Duration SliceAge() const override { return loop_.SliceAge(); }

  void SuspendTrainings(const absl::Status& status) override { trainings_.EndAll(status); }
  void EndAll(const absl::Status& status) override {
    scheduler_.Close(status);
    builder_.Close(status);
    scheduler_.EndAll(status);
    builder_.EndAll(status);
  }
  void Stop(const absl::Status& status) override { loop_.Stop(status); }

 private:
  static EngineLoopOptions LoopOptions(const ServerOptions& options) {
    EngineLoopOptions loop;
    loop.session.max_rows_per_step = options.max_batch_tokens;
    return loop;
  }

  void BuildMissing(CacheBuildRequest request, absl::AnyInvocable<void(absl::Status)> done) {
    const auto sink = std::make_shared<MissingCacheSink>(std::move(done));
    const auto ticket = builder_.BuildCaches(std::move(request), sink);
    if (!ticket.ok()) sink->Refused(ticket.status());
  }

  const ModelFacts model_;
  Memories memories_;
  EngineLoop loop_;
  Builder builder_;
  Scheduler scheduler_;
  AdapterIntake intake_;
  Archives archives_;
  TrainingQueue trainings_;
};

// The compute type is settled at a data folder's first start: a cache of another type is another
// cache.
absl::StatusOr<std::string> SettleDtype(const std::string& wanted, store::AdapterStore& store) {
  const auto stored = store.GetSetting(kDtypeSetting);
  if (!stored.ok()) return stored.status();
  if (!stored->has_value()) return wanted;
  if (wanted != "auto" && wanted != **stored) {
    return absl::FailedPreconditionError(
        absl::StrCat("the data folder was made with --dtype ", **stored, ", not ", wanted,
                     "; start with --dtype ", **stored, " or another --data"));
  }
  return **stored;
}

absl::StatusOr<EnginePtr> LoadEngine(const ServerOptions& options, const std::string& dtype,
                                     const std::function<bool(double)>& progress) {
  engine::EngineOptions load;
  load.model_dir = options.model;
  load.device = options.device;
  load.dtype = dtype;
  load.threads = static_cast<int>(options.threads);
  load.prompt_format = options.prompt_format;
  load.digest_memo = options.data + "/" + kDigestMemo;
  return CatchEngine([&] {
    return engine::Engine::Load(load, [&](double part) {
      if (!progress(part)) engine::ThrowCancelled("stopped while the model was loading");
    });
  });
}

ModelFacts FactsOf(const engine::Engine& engine, const std::string& device) {
  const engine::ModelConfig& config = engine.config();
  const engine::ModelIdentity& identity = engine.identity();
  return {.name = config.name,
          .family = config.family == engine::Family::kQwen3 ? "qwen3" : "llama",
          .dtype = identity.dtype,
          .device = device,
          .parameters = engine.parameters(),
          .layers = static_cast<uint32_t>(config.layers),
          .positions = static_cast<uint32_t>(config.max_positions),
          .vocabulary = static_cast<uint32_t>(config.vocab_size),
          .weight_bytes = engine.weight_bytes(),
          .weights_digest = identity.weights_digest,
          .config_digest = identity.config_digest,
          .tokenizer_digest = identity.tokenizer_digest,
          .prompt_format = engine.prompt_format().name(),
          .prompt_format_digest = engine.prompt_format().digest()};
}

// What main memory must hold. A GPU's own isn't planned: its allocations fail by themselves. What
// is ingested there passes through main memory when it is written.
MemoryPlan WithBudgets(MemoryPlan model, const ServerOptions& options) {
  if (options.device != "cpu") {
    return {.host_budget = options.host_budget_bytes, .ingested_result = model.ingested_result};
  }
  model.device_budget = options.device_budget_bytes;
  model.kv_budget = options.kv_budget_bytes;
  return model;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> Backend::Load(const ServerOptions& options,
                                                       const Parts& parts) {
  const uint64_t memory_limit = ReadMemoryLimit("/");
  absl::Status fits =
      CheckMemory(WithBudgets({.weights = WeightFileBytes(options.model)}, options), memory_limit);
  if (!fits.ok()) return fits;
  const absl::StatusOr<std::string> dtype = SettleDtype(options.dtype, *parts.store);
  if (!dtype.ok()) return dtype.status();
  absl::StatusOr<EnginePtr> engine = LoadEngine(options, *dtype, parts.progress);
  if (!engine.ok()) return engine.status();

  const int64_t positions = (*engine)->config().max_positions;
  if (positions <= options.question_reserve) {
    return absl::InvalidArgumentError(absl::StrCat("--question-reserve ", options.question_reserve,
                                                   " leaves nothing of the model's ", positions,
                                                   " positions"));
  }
  const int64_t longest_context = positions - options.question_reserve;
  const MemoryPlan plan =
      WithBudgets({.weights = (*engine)->weight_bytes(),
                   .prefill_peak = (*engine)->IngestionPeakBytes(longest_context),
                   .ingested_result = (*engine)->CacheBytes(longest_context)},
                  options);
  fits = CheckMemory(plan, memory_limit);
  if (!fits.ok()) return fits;
  parts.log->Info("memory", {{"needed", Arithmetic(plan)}, {"limit_mib", memory_limit >> 20}});
  absl::Status stored = parts.store->PutSetting(kDtypeSetting, (*engine)->identity().dtype);
  if (!stored.ok()) return stored;
  ModelFacts facts = FactsOf(**engine, options.device);
  auto backend =
      std::make_unique<BackendImpl>(options, parts, *std::move(engine), std::move(facts));
  backend->ResumeTrainings();
  return backend;
}

}  // namespace docmem::server
