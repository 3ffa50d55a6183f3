#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/adapter_store.h"

namespace docmem::store {

/// An adapter of a document that is imported.
struct ImportedAdapter {
  uint32_t version = 0;  ///< as it was; distinct among the document's
  AdapterState state = AdapterState::kReady;
  AdapterSpec spec;            ///< its hash is distinct too
  std::vector<NewFile> files;  ///< as uploaded; names are distinct
  NewFile packed;
};

/// What a document is besides its artifacts.
struct ImportedDocument {
  DocumentSpec spec;
  uint32_t document_tokens = 0;
  std::string default_cache_id;          ///< one of its caches; empty: there are none
  uint32_t current_adapter_version = 0;  ///< one of its ready adapters; 0: none
  std::string evaluation;
};

/// A document that comes artifact by artifact from elsewhere. Each is on disk when its call
/// returns, but nothing has a row before `Publish`, which makes all of them visible in one
/// transaction. Destruction before that deletes them, as the next start does after a crash.
/// One thread at a time; blocks on disk; must not outlive its store. After a failed call only
/// destruction is allowed.
class DocumentImport {
 public:
  virtual ~DocumentImport() = default;

  /// At most once; without it the document's text isn't retained, nor are its words counted.
  virtual absl::Status AddText(const std::string& text) = 0;
  virtual absl::Status AddCache(const NewCache& cache) = 0;
  virtual absl::Status AddAdapter(const ImportedAdapter& adapter) = 0;

  /// At most once. The document that is replaced goes with all it had, and the new one has the next
  /// revision. ALREADY_EXISTS or ABORTED as `AdapterStore::BeginImport`, NOT_FOUND when a cache's
  /// adapter didn't come, RESOURCE_EXHAUSTED over a limit of the collection.
  virtual absl::StatusOr<Document> Publish(const ImportedDocument& document) = 0;
};

}  // namespace docmem::store
