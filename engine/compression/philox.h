#pragma once

#include <array>
#include <cstdint>

namespace docmem::engine {

using PhiloxCounter = std::array<uint32_t, 4>;

/// Philox4x32-10: a counter-based random function (Salmon, Moraes, Dror, Shaw: Parallel Random
/// Numbers: As Easy as 1, 2, 3; SC'11). The key's low word is the seed's low word.
constexpr PhiloxCounter Philox4x32(PhiloxCounter counter, uint64_t seed) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {
        static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

}  // namespace docmem::engine
