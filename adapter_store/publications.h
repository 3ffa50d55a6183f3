#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapter_store/artifact_writer.h"
#include "adapter_store/types.h"

namespace docmem::store {

/// What the store takes with the bytes of its files.

/// A cache with the bytes of its file.
struct NewCache {
  CacheSpec spec;
  NewFile file;
};

struct DocumentPublication {
  DocumentKey key;
  int64_t row = 0;        ///< of the document that `BeginDocument` returned
  uint64_t replaces = 0;  ///< revision of the ready document that is overwritten; 0: none is
  DocumentSpec spec;
  uint32_t document_tokens = 0;
  /// Stored compressed where it is retained; a lexical index counts its words in any case. Absent:
  /// neither.
  std::optional<std::string> text;
  bool retain_text = true;
  std::vector<NewCache> caches;  ///< the first becomes the default
};

struct AdapterPublication {
  DocumentKey document;
  AdapterSpec spec;
  std::vector<NewFile> files;  ///< as uploaded; names are distinct
  NewFile packed;
  bool make_current = true;
};

}  // namespace docmem::store
