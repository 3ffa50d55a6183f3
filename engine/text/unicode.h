#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace docmem::engine {

// What stands at the start of some bytes that should be UTF-8.
struct Utf8Step {
  enum class Kind {
    kValid,       // a whole character
    kInvalid,     // bytes that no continuation makes a character (overlong, a surrogate, …)
    kIncomplete,  // the bytes end inside a character
  };
  Kind kind;
  size_t bytes;         // how many bytes belong to it, at least 1
  uint32_t code_point;  // of a whole character, else U+FFFD
};

// `text` must not be empty. The bytes of an invalid step are the longest start of a character, so
// one U+FFFD per step is what Unicode recommends and what Rust and Python do.
Utf8Step NextUtf8(std::string_view text) noexcept;

// The byte position of the first sequence that isn't UTF-8, or the text's length if all of it is.
size_t FirstInvalidUtf8(std::string_view text) noexcept;

inline bool IsValidUtf8(std::string_view text) noexcept {
  return FirstInvalidUtf8(text) == text.size();
}

// Throws kInvalidArgument, with the byte position in the message, if the text isn't UTF-8.
void RequireUtf8(std::string_view text);

void AppendUtf8(uint32_t code_point, std::string* text);

// Whether the code point has Unicode's White_Space property.
bool IsWhiteSpace(uint32_t code_point) noexcept;

// Normalization Form C of valid UTF-8. Time is linear but for the sorting of each run of combining
// marks. Throws as RequireUtf8 does.
std::string NormalizeNfc(std::string_view text);

}  // namespace docmem::engine
