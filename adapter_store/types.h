#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace docmem::store {

/// Plain values that the store takes and gives. Digests are lower-case hexadecimal.

enum class ArtifactKind { kText = 1, kCache = 2, kAdapter = 3, kCheckpoint = 4 };

/// One stored file: a piece of an artifact with a length and checksum of its own.
struct StoredFile {
  int64_t id = 0;
  ArtifactKind kind = ArtifactKind::kText;
  std::string name;  ///< inside its artifact, e.g. "adapter_config.json"; never a path
  uint64_t bytes = 0;
  std::string digest;  ///< XXH3-128 of all bytes
  bool quarantined = false;
  std::string quarantine_reason;
};

struct CollectionLimits {
  uint32_t max_in_flight = 0;  ///< 0: none, here and below; the first two are the caller's to keep
  uint32_t max_queued = 0;
  uint64_t max_bytes = 0;      ///< of all artifacts; kept by the store
  uint32_t max_documents = 0;  ///< kept by the store
};

struct CollectionSettings {
  bool retain_text = true;
  bool lexical_index = false;
  CollectionLimits limits;
  uint32_t default_ratio_ppm = 900000;
  std::string default_mode;  ///< a name that the caller understands; empty: unset
};

struct Collection {
  std::string name;
  CollectionSettings settings;
  uint64_t revision = 0;  ///< from 1
  absl::Time created;
  absl::Time updated;
  uint64_t documents = 0;
  uint64_t stored_bytes = 0;
};

struct DocumentKey {
  std::string collection;
  std::string id;
  bool operator==(const DocumentKey&) const = default;
};

enum class DocumentState { kBuilding = 1, kReady = 2, kFailed = 3, kQuarantined = 4 };

using Labels = std::map<std::string, std::string>;

/// What the maker of a document decides.
struct DocumentSpec {
  std::string text_sha256;
  uint64_t text_bytes = 0;
  std::string title;
  Labels labels;
  bool pinned = false;
  std::string system_text;  ///< empty: the prompt format's own
};

/// What the maker of a cache knows about it.
struct CacheSpec {
  std::string id;  ///< digest of the identity; unique inside a document
  std::map<std::string, std::string> identity;  ///< opaque here
  uint32_t ratio_ppm = 0;
  std::string profile;
  std::string kv_dtype;
  std::string writer_adapter_hash;  ///< empty: the base model
  std::string scorer_adapter_hash;  ///< empty: the base model or nobody
  std::string system_text_digest;
  /// That text; empty: the prompt format's own, or unknown (published by a version before 3 of the
  /// registry).
  std::string system_text;
  uint32_t head_tokens = 0;
  uint32_t context_tokens = 0;
  uint32_t kept_tokens = 0;
  uint64_t device_bytes = 0;  ///< what loading it will cost in the device tier
  uint64_t full_bytes = 0;    ///< of the KV cache without eviction
};

struct Cache {
  CacheSpec spec;
  StoredFile file;
  absl::Time created;
};

struct Document {
  DocumentKey key;
  int64_t row = 0;  ///< names this incarnation: a deleted and recreated document has another
  DocumentState state = DocumentState::kBuilding;
  std::string state_reason;  ///< of kFailed and kQuarantined
  DocumentSpec spec;
  uint32_t document_tokens = 0;
  std::optional<StoredFile> text;        ///< absent where it isn't retained
  std::vector<Cache> caches;             ///< oldest first
  std::string default_cache_id;          ///< empty while there are no caches
  uint32_t current_adapter_version = 0;  ///< 0: none
  uint32_t adapter_count = 0;
  std::string evaluation;  ///< opaque bytes of the caller; empty: none
  uint64_t stored_bytes = 0;
  uint64_t revision = 0;  ///< from 1
  absl::Time created;
  absl::Time updated;
};

struct AdapterSpec {
  std::string hash;  ///< SHA-256 of the content; unique inside a document
  std::string scope;
  std::string base_model;
  std::string description;  ///< opaque here, e.g. ranks and scales per module as JSON
  uint32_t max_rank = 0;
  std::string prompt_format_digest;  ///< what it was trained for
  std::string text_digest;
  std::string training_job_id;  ///< empty when uploaded
  uint64_t device_bytes = 0;
};

enum class AdapterState { kReady = 1, kStale = 2 };

struct Adapter {
  DocumentKey document;
  uint32_t version = 0;  ///< from 1 in each document, never used again
  AdapterSpec spec;
  AdapterState state = AdapterState::kReady;
  bool current = false;
  std::vector<StoredFile> files;  ///< as uploaded, by name
  StoredFile packed;              ///< what is loaded to answer
  absl::Time created;
  uint64_t stored_bytes() const;
  bool quarantined() const;  ///< any of its files
};

enum class TrainingJobState {
  kQueued = 1,
  kRunning = 2,
  kSucceeded = 3,  ///< this one and the next have ended
  kFailed = 4,
  kCancelled = 5
};

inline bool HasEnded(TrainingJobState state) { return state >= TrainingJobState::kSucceeded; }

/// A training of one document's adapter, as it must outlive the process.
struct TrainingJob {
  int64_t id = 0;  ///< from 1, never used again
  DocumentKey document;
  int64_t document_row = 0;  ///< the document's incarnation
  TrainingJobState state = TrainingJobState::kQueued;
  std::string request;  ///< opaque bytes of the caller: what to train
  std::string report;   ///< opaque bytes of the caller: how far it is, how it ended
  std::optional<StoredFile> checkpoint;  ///< to go on from; absent once the job has ended
  absl::Time created;
  absl::Time updated;
};

/// Only what is set is changed.
struct TrainingJobEdit {
  std::optional<TrainingJobState> state;
  std::optional<std::string> request;
  std::optional<std::string> report;
};

/// A document that may answer a question. Scores are from 0 to 1, with one meaning in all
/// collections; how they come about is in lexical/ranking.h.
struct RankedDocument {
  DocumentKey key;
  std::string title;
  double score = 0;
  double best_chunk_score = 0;  ///< of the chunk that fits best, a part of `score`
};

struct RouteResult {
  std::vector<RankedDocument> documents;  ///< best first
  bool abstained = false;                 ///< nothing fits; `documents` are the nearest
};

struct PageRequest {
  uint32_t size = 100;  ///< 1 to 1000
  std::string token;    ///< of the page before; empty: the first
};

template <class T>
struct Page {
  std::vector<T> items;
  std::string next_token;  ///< empty on the last page
};

enum class DocumentOrder { kId, kCreated };

struct DocumentQuery {
  Labels labels;  ///< documents that have all of these
  DocumentOrder order = DocumentOrder::kId;
  bool descending = false;
};

}  // namespace docmem::store
