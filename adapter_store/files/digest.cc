#include "adapter_store/files/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "absl/strings/escaping.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace docmem::store {
namespace {

std::string ToHex(const unsigned char* bytes, size_t size) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), size));
}

}  // namespace

// The library's state wants a larger alignment than `new` gives by default.
struct alignas(64) Xxh3Hasher::State {
  XXH3_state_t xxh;
};

Xxh3Hasher::Xxh3Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }

Xxh3Hasher::~Xxh3Hasher() = default;

void Xxh3Hasher::Update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::string Xxh3Hasher::Hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  return ToHex(canonical.digest, sizeof(canonical.digest));
}

struct Sha256Hasher::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256Hasher::Sha256Hasher() : state_(std::make_unique<State>()) {
  EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr);
}

Sha256Hasher::~Sha256Hasher() = default;

void Sha256Hasher::Update(std::string_view bytes) {
  EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
}

std::string Sha256Hasher::Hex() const {
  const State now;
  EVP_MD_CTX_copy_ex(now.context, state_->context);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  EVP_DigestFinal_ex(now.context, digest, nullptr);
  return ToHex(digest, sizeof(digest));
}

uint64_t Xxh3Of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return ToHex(digest, sizeof(digest));
}

std::string Xxh3Hex(std::string_view bytes) {
  Xxh3Hasher hasher;
  hasher.Update(std::as_bytes(std::span(bytes)));
  return hasher.Hex();
}

}  // namespace docmem::store
