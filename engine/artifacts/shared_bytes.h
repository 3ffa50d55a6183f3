#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace docmem::engine {

/// The bytes of a whole artifact file and what keeps them alive; tensors that are decoded from it
/// alias it, so the bytes mustn't change.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

}  // namespace docmem::engine
