#include "adapter_store/page_token.h"

// A token that is accepted must be one that we could have made.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string token(reinterpret_cast<const char*>(data), size);
  const auto key = docmem::store::ReadPageToken("list", token);
  if (!key.ok()) return 0;
  const auto again =
      docmem::store::ReadPageToken("list", docmem::store::MakePageToken("list", *key));
  if (!again.ok() || *again != *key) __builtin_trap();
  return 0;
}
