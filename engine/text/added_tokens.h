#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/text/regex.h"
#include "engine/text/tokenizer.h"

namespace docmem::engine {

struct AddedToken {
  int32_t id = 0;
  std::string content;       // not empty
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // swallows the white space before it
  bool rstrip = false;       // swallows the white space behind it
  bool normalized = false;   // looked for in the normalised text
  bool special = false;      // never shown to users
};

// Finds added tokens in a text: from left to right, of those that start at the same place the
// longest. Immutable, thread-safe.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  AddedTokens(AddedTokens&&) = default;
  AddedTokens& operator=(AddedTokens&&) = default;

  // Cuts valid UTF-8 into added tokens and what lies between them (never empty), as views of it.
  // Heeds the flags single_word, lstrip and rstrip; the others don't matter here.
  std::vector<Tokenizer::Segment> Split(std::string_view text) const;

 private:
  // Null if no token starts at this byte.
  const AddedToken* FindAt(std::string_view text, size_t at) const;
  bool StandsAlone(std::string_view before, std::string_view after) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string_view, const AddedToken*> by_content_;
  std::vector<std::vector<size_t>> lengths_by_first_byte_;  // [256], each longest first
  Regex word_character_;
};

}  // namespace docmem::engine
