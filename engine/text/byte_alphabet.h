#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace docmem::engine {

// The one-to-one map with which byte-level BPE writes bytes as printable characters: a byte that is
// a printable Latin-1 character other than the space and the soft hyphen stands for itself, the
// others get U+0100, U+0101, … in their order. (The scheme of the GPT-2 tokenizer.)
uint32_t ByteToCharacter(unsigned char byte) noexcept;

// The bytes that a vocabulary's spelling stands for, or nothing if one of its characters stands for
// no byte. `spelling` must be valid UTF-8.
std::optional<std::string> SpellingToBytes(std::string_view spelling);

}  // namespace docmem::engine
