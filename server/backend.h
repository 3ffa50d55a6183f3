#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/adapter_store.h"
#include "server/config.h"
#include "server/ingest/adapter_intake.h"
#include "server/ingest/archives.h"
#include "server/ingest/build.h"
#include "server/jobs/training.h"
#include "server/query/asker.h"
#include "server/runtime/executor.h"
#include "server/runtime/residency.h"
#include "server/runtime/timer.h"
#include "server/services/facts.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

/// Everything behind the services that needs the loaded model, made in the order of dependence and
/// destroyed in reverse. Thread-safe but for construction and end.
class Backend {
 public:
  struct Parts {
    store::AdapterStore* store = nullptr;
    Executor* executor = nullptr;  ///< for registry, files and tokenising
    Executor* loaders = nullptr;   ///< for loads into the device tier
    Timer* timer = nullptr;
    Metrics* metrics = nullptr;
    Log* log = nullptr;
    /// Gets 0 to 1 while the model loads; false: stop loading (then CANCELLED).
    std::function<bool(double)> progress;
  };

  /// Loads the model and starts the engine's thread. Everything in `parts` must outlive the
  /// backend. Blocks for seconds to minutes.
  static absl::StatusOr<std::unique_ptr<Backend>> Load(const ServerOptions& options,
                                                       const Parts& parts);
  /// For recovery mode: no model, nothing loaded, no question taken.
  static std::unique_ptr<Backend> WithoutModel();
  virtual ~Backend() = default;

  virtual Residency* residency() = 0;
  virtual Asker* asker() = 0;
  /// These are null in recovery mode.
  virtual Builds* builds() = 0;
  virtual AdapterIntake* intake() = 0;
  virtual Archives* archives() = 0;
  virtual Trainings* trainings() = 0;
  virtual const ModelFacts* model() const = 0;

  virtual QueueFacts Queue() const = 0;
  /// For how long the engine's current step has been running.
  virtual absl::Duration SliceAge() const = 0;

  /// Stops trainings behind a checkpoint, for the next start to go on with; first at the end, so
  /// that what drains has the engine to itself.
  virtual void SuspendTrainings(const absl::Status& status) = 0;
  /// Ends waiting and running work with `status`; it closes soon after.
  virtual void EndAll(const absl::Status& status) = 0;
  /// Joins the engine's thread; whatever is still open is closed with `status`.
  virtual void Stop(const absl::Status& status) = 0;
};

}  // namespace docmem::server
