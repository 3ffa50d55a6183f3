#include <cstdlib>
#include <string_view>

#include "adapter_store/lexical/word_counts.h"

// Texts and counts of a damaged registry.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  docmem::store::CountText(bytes);
  const uint32_t chunks = size == 0 ? 1 : data[0] + 1u;
  uint32_t next = 0;
  docmem::store::UnpackCounts(bytes, chunks, [&](docmem::store::ChunkCount count) {
    if (count.chunk < next || count.chunk >= chunks || count.count == 0) std::abort();
    next = count.chunk + 1;
  });
  return 0;
}
