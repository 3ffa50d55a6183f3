// Fuzzes adapter_config.json: run build/fuzz/fuzz/adapter_config_fuzz.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/artifacts/peft_config.h"
#include "engine/formats/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using docmem::engine::Error;
  using docmem::engine::PeftConfig;
  try {
    const auto config =
        PeftConfig::Parse(std::string_view(reinterpret_cast<const char*>(data), size));
    config.IsTarget("model.layers.1.self_attn.q_proj");
    config.SettingsOf("model.layers.1.self_attn.q_proj");
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
