#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/types.h"
#include "engine/compression/profile.h"

namespace docmem::server {

/// A document to be ingested, received whole and checked for form.
struct IngestRequest {
  store::DocumentKey key;   ///< the id is not empty
  std::string text;         ///< UTF-8, not empty
  std::string text_sha256;  ///< of `text`
  std::vector<engine::Compression> compressions;  ///< not empty; the first makes the default cache
  std::optional<std::string> system_text;         ///< unset: the document's, else the format's own
  std::string title;
  store::Labels labels;
  bool pin = false;
  std::optional<bool> retain_text;  ///< unset: as the collection says
  bool replace = false;
  uint64_t revision = 0;  ///< with `replace`: of the document that is overwritten
};

/// Further caches of a stored document, from its retained text.
struct CacheBuildRequest {
  store::DocumentKey key;
  std::vector<engine::Compression> compressions;  ///< not empty
  std::optional<std::string> system_text;         ///< unset: the document's
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
  absl::Duration queue, tokenize, prefill, score, publish;
};

/// Takes what becomes of a build. Calls come one at a time, from any thread, and must not block.
class BuildSink {
 public:
  virtual ~BuildSink() = default;
  virtual void OnProgress(const BuildProgress& progress) = 0;
  /// Exactly once and last, unless the sink has left.
  virtual void OnClosed(const absl::StatusOr<BuildResult>& result) = 0;
};

}  // namespace docmem::server
