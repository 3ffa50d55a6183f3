#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace docmem::training {

/// 0 … count − 1 in an order that is a function of the arguments alone, on every machine
/// (Fisher–Yates over Philox). Different `stream`s of one seed are independent.
std::vector<size_t> Shuffled(size_t count, uint64_t seed, uint32_t stream);

/// A seed for a part of the work: a function of the arguments alone.
uint64_t DerivedSeed(uint64_t seed, uint32_t part, uint32_t number, uint32_t second_number = 0);

}  // namespace docmem::training
