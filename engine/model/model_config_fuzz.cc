// config.json and generation_config.json, separated by a zero byte.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/formats/error.h"
#include "engine/model/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string_view generation =
      end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  try {
    docmem::engine::ModelConfig::Parse(input.substr(0, end), generation).Digest("float32");
  } catch (const docmem::engine::Error&) {
  }
  return 0;
}
