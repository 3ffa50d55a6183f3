#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace docmem::training {

/// A question on the document and the answer that the adapter should give.
struct QaPair {
  std::string question;
  std::string answer;
  /// The chunk of the document that the answer stands in, see `CutChunks`; unset: the chunk that
  /// shares most words with the pair.
  std::optional<size_t> chunk;
};

}  // namespace docmem::training
