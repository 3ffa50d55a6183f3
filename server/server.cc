#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "server/access.h"
#include "server/addresses.h"
#include "server/backend.h"
#include "server/errors/error.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/janitor.h"
#include "server/listener.h"
#include "server/pins.h"
#include "server/services/adapter_service.h"
#include "server/services/admin_service.h"
#include "server/services/collection_service.h"
#include "server/services/document_service.h"
#include "server/services/health_service.h"
#include "server/services/query_service.h"
#include "server/services/reflection_service.h"
#include "server/services/training_service.h"
#include "server/telemetry/metrics_server.h"
#include "server/telemetry/version.h"

namespace docmem::server {
namespace {

constexpr absl::Duration kJanitorInterval = absl::Minutes(10);
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
// Between two looks whether the files of tokens and certificates have changed.
constexpr absl::Duration kFileInterval = absl::Seconds(1);
// For calls that were cut to end, and for gRPC to close its connections.
constexpr absl::Duration kCutTime = absl::Seconds(2);

class Daemon {
 public:
  /// All must outlive the daemon.
  struct Parts {
    Access* access = nullptr;
    AuditLog* audit = nullptr;  ///< null: none is kept
    Metrics* metrics = nullptr;
    Log* log = nullptr;
  };
  Daemon(const ServerOptions& options, Parts parts)
      : options_(options),
        log_(parts.log),
        access_(parts.access),
        audit_(parts.audit),
        metrics_(*parts.metrics) {}

  absl::Status Open();
  absl::Status Load(const std::atomic<bool>& stop);
  /// Serves until a stop is wished for.
  void Serve(Wishes* wishes);
  void Stop();

 private:
  absl::Status OpenListeners();
  absl::Status OpenStore();
  void Publish(std::unique_ptr<Backend> backend);
  QueueFacts Queue() const;
  bool Alive() const;
  MetricsSample Sample() const;
  bool WaitUntilIdle(absl::Time deadline);
  AdminService::Parts AdminParts();

  // In the order of dependence: each may use what stands before it.
  const ServerOptions options_;
  Log* const log_;
  Access* const access_;
  AuditLog* const audit_;
  Metrics& metrics_;
  Lifecycle lifecycle_;
  Timer timer_;
  Executor executor_{{.threads = 4}};
  Executor loaders_{{.threads = 2}};
  const Guard guard_{access_->authenticator(), &lifecycle_};
  OpenCalls open_calls_{&timer_};
  const ServiceContext context_{&guard_,   &open_calls_, &executor_, &timer_,
                                &metrics_, log_,         audit_};

  std::unique_ptr<store::AdapterStore> store_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Janitor> janitor_;
  Late<store::AdapterStore> late_store_;
  Late<Backend> late_backend_;
  Late<Residency> late_residency_;
  Late<Builds> late_builds_;
  Late<Asker> late_asker_;
  Late<AdapterIntake> late_intake_;
  Late<Archives> late_archives_;
  Late<Trainings> late_trainings_;
  Late<const ModelFacts> late_model_;

  CollectionService collections_{context_, &late_store_, &late_residency_};
  DocumentService documents_{context_,
                             {.store = &late_store_,
                              .builds = &late_builds_,
                              .trainings = &late_trainings_,
                              .residency = &late_residency_,
                              .archives = &late_archives_}};
  AdapterService adapters_{context_, {&late_store_, &late_residency_, &late_intake_}};
  TrainingService trainings_{context_, &late_trainings_};
  QueryService queries_{context_, &late_asker_, &late_store_};
  AdminService admin_{context_, AdminParts()};
  ReflectionService reflection_{context_};
  HealthService health_{&lifecycle_, [this] { return Alive(); }};

  Listener api_listener_;
  Listener health_listener_;
  std::unique_ptr<MetricsServer> metrics_server_;
};

AdminService::Parts Daemon::AdminParts() {
  return {.lifecycle = &lifecycle_,
          .store = &late_store_,
          .residency = &late_residency_,
          .model = &late_model_,
          .limits = {.max_adapter_rank = options_.max_adapter_rank,
                     .max_queue = options_.max_queue,
                     .max_sequences = options_.max_sequences,
                     .max_batch_tokens = options_.max_batch_tokens,
                     .question_reserve_tokens = options_.question_reserve},
          .queue = [this] { return Queue(); },
          .drain =
              [this](bool drain) {
                lifecycle_.SetDraining(drain);
                log_->Info(drain ? "draining" : "taking work again");
              }};
}

QueueFacts Daemon::Queue() const {
  const Backend* backend = late_backend_.get();
  return backend == nullptr ? QueueFacts() : backend->Queue();
}

bool Daemon::Alive() const {
  const Backend* backend = late_backend_.get();
  return backend == nullptr || backend->SliceAge() < absl::Seconds(options_.watchdog_seconds);
}

MetricsSample Daemon::Sample() const {
  MetricsSample sample;
  if (auto stats = store_->Stats(); stats.ok()) sample.disk = *stats;
  sample.host = late_residency_->HostStats();
  sample.device = late_residency_->Stats();
  const QueueFacts queue = Queue();
  sample.running_requests = queue.running;
  sample.waiting_requests = queue.waiting + queue.loading;
  return sample;
}

absl::Status Daemon::Open() {
  if (absl::Status status = OpenListeners(); !status.ok()) return status;
  std::string host;
  int port = 0;
  SplitAddress(options_.metrics_listen, &host, &port);
  const std::string metrics =
      options_.metrics_listen.substr(0, options_.metrics_listen.rfind(':') + 1) +
      std::to_string(metrics_server_->port());
  const Addresses addresses{api_listener_.address, health_listener_.address, metrics};
  log_->Info("listening", {{"version", kVersion},
                           {"grpc", addresses.grpc},
                           {"health", addresses.health},
                           {"metrics", addresses.metrics}});
  if (options_.addresses_file.empty()) return absl::OkStatus();
  return WriteAddresses(addresses, options_.addresses_file);
}

absl::Status Daemon::OpenListeners() {
  auto metrics = MetricsServer::Start(options_.metrics_listen, metrics_);
  if (!metrics.ok()) return metrics.status();
  metrics_server_ = *std::move(metrics);
  auto health = Listen({.address = options_.health_listen, .services = {&health_}});
  if (!health.ok()) return health.status();
  health_listener_ = *std::move(health);
  auto api = Listen({.address = options_.listen,
                     .credentials = access_->credentials(),
                     .services = {&collections_, &documents_, &adapters_, &trainings_, &queries_,
                                  &admin_, &reflection_}});
  if (!api.ok()) return api.status();
  api_listener_ = *std::move(api);
  return absl::OkStatus();
}

absl::Status Daemon::OpenStore() {
  store::AdapterStoreOptions options;
  options.folder = options_.data;
  options.budget_bytes = options_.disk_budget_bytes;
  options.postgres = options_.registry;
  options.artifacts = options_.artifacts;
  auto store = store::AdapterStore::Open(std::move(options));
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  late_store_.Set(store_.get());
  const auto stats = store_->Stats();
  if (!stats.ok()) return stats.status();
  log_->Info("registry open", {{"documents", stats->documents},
                               {"quarantined", stats->quarantined_documents},
                               {"dropped_jobs", stats->dropped_jobs},
                               {"orphans_collected", stats->orphans_collected},
                               {"generation", store_->generation()}});
  return absl::OkStatus();
}

absl::Status Daemon::Load(const std::atomic<bool>& stop) {
  const absl::Time began = absl::Now();
  if (absl::Status status = OpenStore(); !status.ok()) return status;
  if (options_.recovery) {
    Publish(Backend::WithoutModel());
    lifecycle_.SetPhase(Phase::kRecovery);
    log_->Warning("recovery mode: no model, only listing and deleting");
    return absl::OkStatus();
  }
  lifecycle_.SetPhase(Phase::kLoadingModel);
  auto backend = Backend::Load(options_, {.store = store_.get(),
                                          .executor = &executor_,
                                          .loaders = &loaders_,
                                          .timer = &timer_,
                                          .metrics = &metrics_,
                                          .log = log_,
                                          .progress = [&](double part) {
                                            lifecycle_.SetLoadProgress(part);
                                            return !stop.load();
                                          }});
  if (!backend.ok()) return backend.status();
  Publish(*std::move(backend));
  const auto pinned = RestorePins(*store_, *backend_->residency(), *log_);
  if (!pinned.ok()) return pinned.status();
  lifecycle_.SetLoadProgress(1.0);
  lifecycle_.SetPhase(Phase::kServing);
  log_->Info("serving", {{"model", backend_->model()->name},
                         {"dtype", backend_->model()->dtype},
                         {"pinned", *pinned},
                         {"load_seconds", absl::ToDoubleSeconds(absl::Now() - began)}});
  return absl::OkStatus();
}

void Daemon::Publish(std::unique_ptr<Backend> backend) {
  backend_ = std::move(backend);
  janitor_ = std::make_unique<Janitor>(Janitor::Parts{store_.get(), &timer_, &executor_, log_},
                                       kJanitorInterval);
  if (const ModelFacts* model = backend_->model()) {
    metrics_.SetModel(
        {model->name, model->family, model->dtype, model->device, model->weights_digest});
  }
  late_residency_.Set(backend_->residency());
  late_builds_.Set(backend_->builds());
  late_asker_.Set(backend_->asker());
  late_intake_.Set(backend_->intake());
  late_archives_.Set(backend_->archives());
  late_trainings_.Set(backend_->trainings());
  late_model_.Set(backend_->model());
  late_backend_.Set(backend_.get());
  metrics_.SetSampler([this] { return Sample(); });
}

bool Daemon::WaitUntilIdle(absl::Time deadline) {
  if (!open_calls_.WaitUntilEmpty(deadline)) return false;
  while (Queue().building > 0) {  // detached builds have no call
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(kPollInterval);
  }
  return true;
}

void Daemon::Serve(Wishes* wishes) {
  absl::Time next_look = absl::Now();
  while (!wishes->stop) {
    const bool reload = wishes->reload.exchange(false);
    if (reload && audit_ != nullptr) audit_->Reopen();
    if (reload || absl::Now() >= next_look) {
      access_->Refresh(reload);
      next_look = absl::Now() + kFileInterval;
    }
    absl::SleepFor(kPollInterval);
  }
}

void Daemon::Stop() {
  const absl::Time began = absl::Now();
  lifecycle_.SetPhase(Phase::kStopping);
  log_->Info("stopping", {{"open_calls", open_calls_.count()}});
  const absl::Status why = Error(absl::StatusCode::kUnavailable, reason::kShuttingDown,
                                 "the daemon stops; ask another replica or later");
  if (backend_) backend_->SuspendTrainings(why);
  const bool drained = WaitUntilIdle(began + absl::Seconds(options_.drain_seconds));
  if (!drained) {
    log_->Warning("drain deadline passed", {{"open_calls", open_calls_.count()}});
    open_calls_.CutAll(why);
  }
  if (backend_) backend_->EndAll(why);
  open_calls_.WaitUntilEmpty(absl::Now() + kCutTime);

  if (api_listener_.server) {
    api_listener_.server->Shutdown(absl::ToChronoTime(absl::Now() + kCutTime));
    api_listener_.server->Wait();
  }
  janitor_.reset();
  if (backend_) backend_->Stop(why);
  executor_.Close();
  loaders_.Close();
  metrics_.SetSampler({});
  metrics_server_.reset();
  health_.Close();
  if (health_listener_.server) {
    health_listener_.server->Shutdown(absl::ToChronoTime(absl::Now() + kCutTime));
    health_listener_.server->Wait();
  }
  backend_.reset();
  store_.reset();
  log_->Info("stopped",
             {{"drained", drained}, {"seconds", absl::ToDoubleSeconds(absl::Now() - began)}});
}

}  // namespace

int RunDaemon(const ServerOptions& options, Wishes* wishes) {
  Log log(options.log_level);
  Metrics metrics(kVersion);
  const auto cannot_start = [&log](const absl::Status& why) {
    log.Error("can't start", {{"message", std::string(why.message())}});
    return 1;
  };
  absl::StatusOr<std::unique_ptr<Access>> access = Access::Open(options, &log, &metrics);
  if (!access.ok()) return cannot_start(access.status());
  std::unique_ptr<AuditLog> audit;
  if (!options.audit_log.empty()) {
    auto opened = AuditLog::Open(options.audit_log, {&metrics, &log});
    if (!opened.ok()) return cannot_start(opened.status());
    audit = *std::move(opened);
  }
  Daemon daemon(options,
                {.access = access->get(), .audit = audit.get(), .metrics = &metrics, .log = &log});
  absl::Status status = daemon.Open();
  if (status.ok()) status = daemon.Load(wishes->stop);
  int code = 0;
  if (status.ok()) {
    daemon.Serve(wishes);
  } else if (!wishes->stop) {
    code = cannot_start(status);
  }
  daemon.Stop();
  return code;
}

}  // namespace docmem::server
