#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace docmem::engine {

// SHA-256 of bytes that come in pieces. For content addresses and identities; checksums of files
// that are read often use Xxh3, which is faster. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view bytes);

  // 64 lower-case hexadecimal digits of everything so far; more may follow.
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// XXH3-128 (seed 0) of bytes that come in pieces. Not thread-safe.
class Xxh3 {
 public:
  Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;
  ~Xxh3();

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view bytes);

  // 32 lower-case hexadecimal digits (the canonical, big-endian form) of everything so far; more
  // may follow.
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(std::string_view bytes);
std::string Sha256Hex(std::span<const std::byte> bytes);
std::string Xxh3Hex(std::string_view bytes);
std::string Xxh3Hex(std::span<const std::byte> bytes);

}  // namespace docmem::engine
