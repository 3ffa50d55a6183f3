#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace docmem::store {

/// How an archive is laid out, for its reader and writer: magic, version (32 bits, little-endian);
/// length of the manifest (likewise) and its XXH3-128; manifest; parts; SHA-256 of all before.
/// Digests are hexadecimal. The first two never change, so every version can tell another.

inline constexpr char kArchiveMagic[] = "DOCMEMAR";
inline constexpr size_t kArchiveMagicBytes = 8;
inline constexpr size_t kArchiveVersionBytes = kArchiveMagicBytes + 4;
inline constexpr size_t kArchiveHeaderBytes = 4 + 32;
inline constexpr size_t kArchiveDigestBytes = 64;

inline std::string EncodeLength(uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

inline uint32_t DecodeLength(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace docmem::store
