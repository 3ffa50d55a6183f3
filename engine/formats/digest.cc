#include "engine/formats/digest.h"

#include <openssl/evp.h>
#include <xxhash.h>
#ifdef __x86_64__
#include <xxh_x86dispatch.h>  // the CPU's widest instructions
#endif

#include <array>

#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

std::string ToHex(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void Require(bool ok, const char* library) {
  if (!ok) ThrowInternal(library, "the hash library reports a failure");
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using ContextPtr = std::unique_ptr<EVP_MD_CTX, FreeContext>;

struct FreeXxh3 {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

template <typename Hash>
std::string HashOnce(std::span<const std::byte> bytes) {
  Hash hash;
  hash.Update(bytes);
  return hash.Hex();
}

}  // namespace

struct Sha256::State {
  ContextPtr context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  Require(state_->context != nullptr &&
              EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1,
          "SHA-256");
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::Update(std::span<const std::byte> bytes) {
  Require(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1, "SHA-256");
}

void Sha256::Update(std::string_view bytes) { Update(AsBytes(bytes)); }

std::string Sha256::Hex() const {
  const ContextPtr copy(EVP_MD_CTX_new());
  std::array<unsigned char, 32> digest;
  Require(copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), state_->context.get()) == 1 &&
              EVP_DigestFinal_ex(copy.get(), digest.data(), nullptr) == 1,
          "SHA-256");
  return ToHex(digest);
}

struct Xxh3::State {
  std::unique_ptr<XXH3_state_t, FreeXxh3> state{XXH3_createState()};
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {
  Require(state_->state != nullptr && XXH3_128bits_reset(state_->state.get()) == XXH_OK, "XXH3");
}
Xxh3::Xxh3(Xxh3&&) noexcept = default;
Xxh3& Xxh3::operator=(Xxh3&&) noexcept = default;
Xxh3::~Xxh3() = default;

void Xxh3::Update(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  Require(XXH3_128bits_update(state_->state.get(), bytes.data(), bytes.size()) == XXH_OK, "XXH3");
}

void Xxh3::Update(std::string_view bytes) { Update(AsBytes(bytes)); }

std::string Xxh3::Hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->state.get()));
  return ToHex(canonical.digest);
}

std::string Sha256Hex(std::span<const std::byte> bytes) { return HashOnce<Sha256>(bytes); }
std::string Sha256Hex(std::string_view bytes) { return Sha256Hex(AsBytes(bytes)); }
std::string Xxh3Hex(std::span<const std::byte> bytes) { return HashOnce<Xxh3>(bytes); }
std::string Xxh3Hex(std::string_view bytes) { return Xxh3Hex(AsBytes(bytes)); }

}  // namespace docmem::engine
