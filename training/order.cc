#include "training/order.h"

#include <numeric>
#include <utility>

#include "engine/compression/philox.h"

namespace docmem::training {
namespace {

constexpr uint32_t kOrder = 0x6f726465;  // keeps the two functions' counters apart
constexpr uint32_t kSeeds = 0x73656564;

}  // namespace

std::vector<size_t> Shuffled(size_t count, uint64_t seed, uint32_t stream) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t left = count; left > 1; --left) {
    const auto draw = engine::Philox4x32({static_cast<uint32_t>(left), stream, 0, kOrder}, seed);
    const uint64_t number = uint64_t{draw[0]} << 32 | draw[1];
    std::swap(order[left - 1], order[number % left]);
  }
  return order;
}

uint64_t DerivedSeed(uint64_t seed, uint32_t part, uint32_t number, uint32_t second_number) {
  const auto draw = engine::Philox4x32({number, second_number, part, kSeeds}, seed);
  return uint64_t{draw[0]} << 32 | draw[1];
}

}  // namespace docmem::training
