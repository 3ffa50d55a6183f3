// Fuzzes training checkpoints, with the header sealed so that its checksum doesn't stop the input:
// run build/fuzz/fuzz/checkpoint_fuzz.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/artifacts/sealed_file.h"
#include "engine/formats/error.h"
#include "training/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace docmem;
  std::string file(reinterpret_cast<const char*>(data), size);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, data, std::min<size_t>(size, sizeof(header_bytes)));
  if (size >= sizeof(header_bytes) && header_bytes <= size - sizeof(header_bytes)) {
    const size_t end = sizeof(header_bytes) + header_bytes;
    file = engine::SealHeader(file.substr(0, end)) + file.substr(end);
  }
  try {
    training::ReadCheckpoint(file, "inputs");
  } catch (const engine::Error&) {
    return 0;
  }
  return 0;
}
