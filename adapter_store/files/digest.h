#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace docmem::store {

/// XXH3-128 (seed 0) of bytes that come in pieces. Not thread-safe.
class Xxh3Hasher {
 public:
  Xxh3Hasher();
  ~Xxh3Hasher();
  Xxh3Hasher(const Xxh3Hasher&) = delete;
  Xxh3Hasher& operator=(const Xxh3Hasher&) = delete;

  void Update(std::span<const std::byte> bytes);
  /// 32 lower-case hexadecimal digits, big-endian, of everything so far.
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// SHA-256 of bytes that come in pieces. Not thread-safe.
class Sha256Hasher {
 public:
  Sha256Hasher();
  ~Sha256Hasher();
  Sha256Hasher(const Sha256Hasher&) = delete;
  Sha256Hasher& operator=(const Sha256Hasher&) = delete;

  void Update(std::string_view bytes);
  /// 64 lower-case hexadecimal digits of everything so far; more may follow.
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// XXH3-64 (seed 0): guards rows of the registry.
uint64_t Xxh3Of(std::string_view bytes);

/// SHA-256 as 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);
/// XXH3-128 as 32 lower-case hexadecimal digits.
std::string Xxh3Hex(std::string_view bytes);

}  // namespace docmem::store
