#include "adapter_store/files/digest.h"

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

uint64_t Xxh3Of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return ToHex(digest, sizeof(digest));
}

}  // namespace docmem::store
