#include "adapter_store/files/text_codec.h"

// The first two bytes are the length that the registry has; the rest is the stored file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint64_t text_bytes = data[0] + 256u * data[1];
  const auto text = docmem::store::DecompressText(
      std::as_bytes(std::span<const uint8_t>(data + 2, size - 2)), text_bytes);
  if (text.ok() && text->size() != text_bytes) __builtin_trap();
  return 0;
}
