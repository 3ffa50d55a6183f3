#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/types.h"

namespace docmem::store {

/// Version of the archive of one exported document that this code writes, and the only one that it
/// reads. docs/formats.md has the format.
inline constexpr uint32_t kArchiveVersion = 1;
inline constexpr uint32_t kMaxManifestBytes = uint32_t{4} << 20;

/// One file inside an archive.
struct ArchiveFile {
  std::string name;  ///< inside its artifact
  uint64_t bytes = 0;
  std::string digest;  ///< XXH3-128
  bool operator==(const ArchiveFile&) const = default;
};

struct ArchiveAdapter {
  uint32_t version = 0;
  AdapterState state = AdapterState::kReady;
  std::string hash;
  std::string scope;
  std::string prompt_format_digest;
  std::string text_digest;
  std::string training_job_id;
  std::vector<ArchiveFile> files;  ///< as uploaded; the packed form is made again
};

struct ArchiveCache {
  std::string id;
  std::string system_text_digest;
  std::string system_text;  ///< as in CacheSpec; no member of the manifest where empty
  ArchiveFile file;         ///< its identity tells the rest
};

/// What stands before an archive's parts: everything about the document but its artifacts' bytes.
struct ArchiveManifest {
  std::map<std::string, std::string> model;  ///< identity of the base model, opaque here
  DocumentKey key;
  DocumentSpec spec;
  uint32_t document_tokens = 0;
  std::string default_cache_id;
  uint32_t current_adapter_version = 0;
  std::string evaluation;
  std::optional<ArchiveFile> text;  ///< uncompressed; absent: not retained
  std::vector<ArchiveAdapter> adapters;
  std::vector<ArchiveCache> caches;
};

/// A part and what it belongs to.
struct ArchivePart {
  const ArchiveFile* file = nullptr;  ///< inside the manifest, as the others
  const ArchiveAdapter* adapter = nullptr;
  const ArchiveCache* cache = nullptr;  ///< both null: the text
};

/// The parts in the order in which their bytes follow: text, adapters' files, caches.
std::vector<ArchivePart> PartsOf(const ArchiveManifest& manifest);

/// As JSON.
std::string WriteManifest(const ArchiveManifest& manifest);

/// INVALID_ARGUMENT (IMPORT_INVALID) naming what is wrong: a field that is missing, unknown or of
/// another type, values that the store would refuse, an artifact that comes twice, a default cache
/// or current adapter that isn't there.
absl::StatusOr<ArchiveManifest> ParseManifest(std::string_view json);

/// INVALID_ARGUMENT (IMPORT_INVALID) about an archive.
absl::Status ArchiveInvalid(const std::string& why);

}  // namespace docmem::store
