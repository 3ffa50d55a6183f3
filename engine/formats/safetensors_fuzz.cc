#include "engine/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using docmem::engine::SafetensorsView;
  try {
    const SafetensorsView view =
        SafetensorsView::Parse(std::as_bytes(std::span(data, size)), "input");
    size_t bytes = 0;
    unsigned sum = 0;
    for (const auto& [name, info] : view.tensors()) {
      for (const std::byte byte : view.Data(info)) sum += static_cast<unsigned>(byte);
      bytes += info.end - info.begin;
    }
    if (view.header().payload_offset() + bytes != size || sum > 255 * bytes) __builtin_trap();
  } catch (const docmem::engine::Error&) {
  }
  return 0;
}
