#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/types.h"
#include "engine/artifacts/mode.h"
#include "engine/compression/profile.h"

namespace docmem::server {

/// A document to be ingested, received whole and checked for form.
struct IngestRequest {
  store::DocumentKey key;                         ///< the id is not empty
  std::string text;                               ///< UTF-8, not empty
  std::string text_sha256;                        ///< of `text`
  std::vector<engine::Compression> compressions;  ///< not empty; the first makes the default cache
  std::optional<std::string> system_text;         ///< unset: the document's, else the format's own
  std::string title;
  store::Labels labels;
  bool pin = false;
  std::optional<bool> retain_text;  ///< unset: as the collection says
  bool replace = false;
  uint64_t revision = 0;  ///< with `replace`: of the document that is overwritten
  /// Unless empty: called once the document is ready, on a thread that may block; queues a training
  /// and gives its id. Its failure is the build's, the document stays.
  std::function<absl::StatusOr<std::string>(const store::DocumentKey&)> when_ready;
};

/// Who makes caches. Modes that use the base model's cache make that one; then the rest is ignored.
struct CacheMaker {
  engine::Mode mode = engine::Mode::kBase;
  uint32_t adapter_version = 0;  ///< 0: the current one
  bool allow_adapter_mismatch = false;
  bool operator==(const CacheMaker&) const = default;
};

/// Further caches of a stored document, from its retained text.
struct CacheBuildRequest {
  store::DocumentKey key;
  std::vector<engine::Compression> compressions;  ///< not empty
  std::optional<std::string> system_text;         ///< unset: the document's
  CacheMaker maker;
};

struct BuildProgress {
  enum class Phase { kReceiving, kQueued, kTokenizing, kPrefilling, kPublishing };
  Phase phase = Phase::kQueued;
  double fraction = 0.0;  ///< of this phase
  uint64_t received_bytes = 0;
  uint32_t context_tokens = 0;  ///< 0 until known
  absl::Duration elapsed;
};

struct BuildResult {
  store::Document document;
  std::vector<std::string> cache_ids;        ///< in the order asked
  std::vector<std::string> built_cache_ids;  ///< of those, made by this build
  std::string training_id;                   ///< of the training that was queued; empty: none was
  absl::Duration queue, tokenize, prefill, score, publish;
};

/// Takes what becomes of a build. Calls come one at a time, from any thread, and must not block.
class BuildSink {
 public:
  virtual ~BuildSink() = default;
  /// Must not call back: a lock of the build is held.
  virtual void OnProgress(const BuildProgress& progress) = 0;
  /// Once and last; not at all when the sink has left in time.
  virtual void OnClosed(const absl::StatusOr<BuildResult>& result) = 0;
};

/// Where services hand in documents without knowing tensors. Thread-safe; nothing blocks.
class Builds {
 public:
  /// Names one sink's part in a build.
  struct Ticket {
    std::shared_ptr<void> job;
    uint64_t sink = 0;
  };

  virtual ~Builds() = default;

  /// Number format of keys and values where a request names none, as a cache's row has it.
  virtual std::string kv_dtype() const = 0;

  /// RESOURCE_EXHAUSTED when too many builds wait, UNAVAILABLE when closed; then the sink is never
  /// called. `detach`: go on when all sinks have left.
  virtual absl::StatusOr<Ticket> Ingest(IngestRequest request, bool detach,
                                        std::shared_ptr<BuildSink> sink) = 0;
  virtual absl::StatusOr<Ticket> BuildCaches(CacheBuildRequest request,
                                             std::shared_ptr<BuildSink> sink) = 0;
  /// The sink is called no more, but for a call that is under way; a build that nobody waits for
  /// any more is stopped, unless it is detached or publishing already.
  virtual void Leave(const Ticket& ticket) = 0;
};

}  // namespace docmem::server
