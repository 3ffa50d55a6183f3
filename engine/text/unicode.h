#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace docmem::engine {

// The byte position of the first sequence that isn't UTF-8 (overlong, a surrogate, above U+10FFFF,
// cut), or the text's length if all of it is.
size_t FirstInvalidUtf8(std::string_view text) noexcept;

inline bool IsValidUtf8(std::string_view text) noexcept {
  return FirstInvalidUtf8(text) == text.size();
}

struct CodePoint {
  uint32_t value;
  size_t bytes;  // 1 to 4
};

// The code point at byte `position` of valid UTF-8; `position` must be its first byte.
CodePoint DecodeUtf8(std::string_view text, size_t position) noexcept;

// The code points of Unicode's White_Space property.
bool IsWhiteSpace(uint32_t code_point) noexcept;

// Normalization Form C. Time is linear but for the sorting of each run of combining marks. Throws
// kInvalidArgument if the text isn't valid UTF-8.
std::string NormalizeNfc(std::string_view text);

}  // namespace docmem::engine
