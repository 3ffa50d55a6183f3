#include "engine/text/byte_alphabet.h"

#include <array>

#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

constexpr bool IsPrintable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, 0x200> byte{};
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  uint16_t next = 0x100;
  for (uint16_t byte = 0; byte < 256; ++byte) {
    const uint16_t character = IsPrintable(byte) ? byte : next++;
    alphabet.character[byte] = character;
    alphabet.byte[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

uint32_t ByteToCharacter(unsigned char byte) noexcept { return kAlphabet.character[byte]; }

std::optional<std::string> SpellingToBytes(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const Utf8Step step = NextUtf8(spelling);
    spelling.remove_prefix(step.bytes);
    if (step.code_point >= kAlphabet.byte.size()) return std::nullopt;
    const int16_t byte = kAlphabet.byte[step.code_point];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace docmem::engine
