#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/archive_writer.h"
#include "server/ingest/adapter_intake.h"
#include "server/runtime/residency.h"

namespace docmem::server {

struct ImportRequest {
  store::DocumentKey key;  ///< the id may be empty: as the archive says
  uint64_t replaces = 0;   ///< revision of the document that is overwritten; 0: none is
  uint64_t max_text_bytes = 0;
  uint64_t max_adapter_bytes = 0;  ///< of the files of one adapter
};

/// An archive that is being received. One thread at a time; blocks. Destroyed before `Publish` it
/// leaves nothing. After a failed call only destruction is allowed.
class IncomingArchive {
 public:
  virtual ~IncomingArchive() = default;

  /// The next bytes, any number. Each part is checked as a file that is loaded or uploaded, and
  /// staged, as soon as it is whole; where the text came, a cache must be made from it.
  /// INVALID_ARGUMENT (IMPORT_INVALID, LIMIT_EXCEEDED), FAILED_PRECONDITION (IDENTITY_MISMATCH)
  /// naming what differs, what the store says of the document's place, and of adapters what
  /// `AdapterIntake` says.
  virtual absl::Status Take(std::string_view bytes) = 0;
  /// Once all bytes have come.
  virtual absl::StatusOr<store::Document> Publish() = 0;
};

/// Documents as single files, out of and into the store. Thread-safe.
class Archives {
 public:
  struct Parts {
    std::shared_ptr<const engine::Engine> engine;
    store::AdapterStore* store = nullptr;
    Residency* residency = nullptr;
    const AdapterIntake* intake = nullptr;
  };

  /// The parts must outlive the archives and what comes of them.
  explicit Archives(Parts parts) : parts_(std::move(parts)) {}

  /// Blocks on disk; see `store::ArchiveWriter::Open`. FAILED_PRECONDITION (IDENTITY_MISMATCH) for
  /// a text with a cache that an import couldn't compare with it.
  absl::StatusOr<std::unique_ptr<store::ArchiveWriter>> Export(const store::DocumentKey& key) const;
  std::unique_ptr<IncomingArchive> Import(ImportRequest request) const;

 private:
  const Parts parts_;
};

}  // namespace docmem::server
