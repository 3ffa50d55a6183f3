#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "engine/text/tokenizer.h"

namespace docmem::engine {

// Turns ids into text one at a time. What it hands out is always whole UTF-8 characters, and all
// of it together equals Tokenizer::Decode of all the ids. Not thread-safe.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  // The characters that this id completes; may be empty. Bytes that can no longer become a
  // character come out as U+FFFD.
  std::string Push(int32_t id);

  // What is left when the answer ends in the middle of a character: one U+FFFD, else nothing.
  // The decoder is then as new, but for the count.
  std::string Finish();

  // Bytes received so far that didn't form characters and became U+FFFD.
  int64_t replaced_bytes() const noexcept { return replaced_bytes_; }

 private:
  Tokenizer tokenizer_;
  std::string pending_;  // the start of a character, at most 3 bytes
  int64_t replaced_bytes_ = 0;
};

}  // namespace docmem::engine
