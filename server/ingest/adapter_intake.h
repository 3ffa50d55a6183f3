#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/types.h"
#include "engine/artifacts/mode.h"
#include "server/runtime/residency.h"

namespace docmem::engine {
class Engine;
}

namespace docmem::server {

/// An adapter that was received whole.
struct AdapterUpload {
  store::DocumentKey document;
  engine::AdapterScope scope = engine::AdapterScope::kQuestionAndAnswer;
  bool allow_other_base = false;
  std::string prompt_format_digest;  ///< empty: the engine's
  std::string text_digest;           ///< empty: the document's
  std::string training_job_id;       ///< empty: it was made elsewhere
  bool keep_current = false;
  std::map<std::string, std::string> files;  ///< of the PEFT folder, by name
};

/// What the store takes of an uploaded adapter, besides its own files.
struct PackedUpload {
  store::AdapterSpec spec;
  std::string file;  ///< the packed form
};

/// An upload's files as the store takes them; `upload` must live until they are published, and
/// `packed` for its packed form.
std::vector<store::NewFile> FilesOf(const AdapterUpload& upload);
store::NewFile FileOf(const PackedUpload& packed);

/// Checks uploaded adapters against the model, packs and publishes them. Thread-safe.
class AdapterIntake {
 public:
  /// All must outlive the intake.
  AdapterIntake(std::shared_ptr<const engine::Engine> engine, store::AdapterStore* store,
                Residency* residency, uint32_t max_rank);

  /// Blocks: decoding and packing. Stores nothing and looks at no document. As `Publish`, but for
  /// what a document or the store refuses.
  absl::StatusOr<PackedUpload> Pack(const AdapterUpload& upload) const;

  /// Blocks: decoding, packing, files. NOT_FOUND (document), FAILED_PRECONDITION, INVALID_ARGUMENT
  /// (ADAPTER_INVALID), UNIMPLEMENTED (ADAPTER_UNSUPPORTED), RESOURCE_EXHAUSTED.
  absl::StatusOr<store::Adapter> Publish(AdapterUpload upload) const;

 private:
  const std::shared_ptr<const engine::Engine> engine_;
  store::AdapterStore* const store_;
  Residency* const residency_;
  const uint32_t max_rank_;
};

}  // namespace docmem::server
