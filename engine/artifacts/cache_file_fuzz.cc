// Fuzzes the cache file's header, sealed so that its checksum doesn't stop the input, in front of
// the payload: run build/fuzz/fuzz/cache_file_fuzz.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/artifacts/cache_file.h"
#include "engine/artifacts/sealed_file.h"
#include "engine/formats/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace docmem::engine;
  std::string file(reinterpret_cast<const char*>(data), size);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, data, std::min<size_t>(size, sizeof(header_bytes)));
  if (size >= sizeof(header_bytes) && header_bytes <= size - sizeof(header_bytes)) {
    const size_t end = sizeof(header_bytes) + header_bytes;
    file = SealHeader(file.substr(0, end)) + file.substr(end);
  }
  try {
    ReadCacheFile({.owner = nullptr, .bytes = std::as_bytes(std::span(file))}, at::kCPU);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
