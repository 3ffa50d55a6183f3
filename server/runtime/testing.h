#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "adapter_store/adapter_store.h"
#include "engine/engine.h"
#include "server/runtime/engine_loop.h"
#include "server/runtime/executor.h"
#include "server/runtime/memories.h"
#include "server/runtime/timer.h"
#include "server/telemetry/metrics.h"

namespace docmem::server {

/// For tests: the tiny model of tests/reference, loaded once per process, in fp32; changed so that
/// greedy answers never end before max_tokens.
std::shared_ptr<const engine::Engine> TinyEngine();

/// A short document, the same at every call.
std::string TinyDocument();

/// A cache of `document`, ingested on the calling thread.
std::shared_ptr<const engine::Cache> TinyCache(const std::string& document, uint32_t ratio_ppm);

/// Files of a PEFT adapter for the tiny model: tests/reference/adapters/`name`.
engine::PeftFolder TinyAdapter(const std::string& name);

/// What the daemon's middle layer works with, on an empty data folder that goes with the object.
class TestParts {
 public:
  explicit TestParts(const MemoriesOptions& budgets = {.device_budget_bytes = uint64_t{64} << 20});
  ~TestParts();

  /// Ends all threads that run callbacks, so that what they call into can be destroyed. Idempotent.
  void StopThreads();

  /// Puts a ready document with one cache per ratio into the store.
  store::Document Publish(const std::string& id, const std::vector<uint32_t>& ratios_ppm);
  /// Makes it the document's current adapter.
  store::Adapter PublishAdapter(const store::DocumentKey& document, const std::string& name);

  std::string folder;
  Metrics metrics{"test"};
  std::unique_ptr<store::AdapterStore> store;
  Executor executor{{.threads = 2}};
  Executor loaders{{.threads = 2}};
  Timer timer;
  Memories memories;
  EngineLoop loop;
};

}  // namespace docmem::server
