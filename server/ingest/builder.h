#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/sync.h"
#include "server/ingest/build.h"
#include "server/runtime/engine_loop.h"
#include "server/runtime/executor.h"
#include "server/runtime/memories.h"
#include "server/runtime/timer.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

class BuildJob;

struct BuilderOptions {
  uint32_t max_builds = 64;  ///< waiting and running
  uint32_t question_reserve_tokens = 512;
  absl::Duration heartbeat = absl::Seconds(5);  ///< between two progress messages at the latest
};

/// What a builder works with; all of it must outlive the builder.
struct BuilderParts {
  std::shared_ptr<const engine::Engine> engine;
  store::AdapterStore* store = nullptr;
  Memories* memories = nullptr;
  EngineLoop* loop = nullptr;
  Timer* timer = nullptr;
  Executor* executor = nullptr;  ///< for registry, files and tokenising
  Metrics* metrics = nullptr;
};

/// Makes caches: encode, prefill and evict in units between decode steps, publish. Builds of one
/// document run one after another; an equal one that runs is joined. Input that can't be ingested
/// leaves no trace; a fault while building leaves the document FAILED with its reason.
/// Thread-safe; nothing blocks.
class Builder : public Builds {
 public:
  Builder(BuilderParts parts, BuilderOptions options);
  /// Everything must have ended: see `EndAll`.
  ~Builder() override;

  std::string kv_dtype() const override;
  absl::StatusOr<Ticket> Ingest(IngestRequest request, bool detach,
                                std::shared_ptr<BuildSink> sink) override;
  absl::StatusOr<Ticket> BuildCaches(CacheBuildRequest request,
                                     std::shared_ptr<BuildSink> sink) override;
  void Leave(const Ticket& ticket) override;

  void Close(absl::Status status);  ///< refuses new builds with `status`; open ones go on
  void Reopen();
  void EndAll(const absl::Status& status);  ///< ends open builds that don't publish already
  uint32_t builds() const;

 private:
  friend class BuildJob;
  using JobPtr = std::shared_ptr<BuildJob>;

  absl::StatusOr<Ticket> Start(JobPtr job, bool detach, std::shared_ptr<BuildSink> sink);
  /// Called by a job at its very end: starts the next one of the document.
  void Finished(const std::string& name);

  const BuilderParts parts_;
  const BuilderOptions options_;

  mutable store::Mutex mutex_;
  /// By document; the front one runs.
  std::map<std::string, std::deque<JobPtr>> jobs_ ABSL_GUARDED_BY(mutex_);
  uint32_t job_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace docmem::server
