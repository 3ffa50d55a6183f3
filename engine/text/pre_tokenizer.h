#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "engine/text/regex.h"

namespace docmem::engine {

// Cuts a text into the pieces that BPE then encodes one by one. Every step cuts each piece of the
// step before at its matches; matches and what lies between them become pieces, nothing is lost.
// Immutable, thread-safe.
class PreTokenizer {
 public:
  explicit PreTokenizer(std::vector<Regex> steps = {}) : steps_(std::move(steps)) {}

  // The pieces in order, none empty, as views of `text`, which must be valid UTF-8. Throws what
  // `piece` throws and as Regex::Matcher::Find does.
  void Split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

 private:
  std::vector<Regex> steps_;
};

}  // namespace docmem::engine
