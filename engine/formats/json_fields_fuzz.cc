#include "engine/formats/json_fields.h"

#include <nlohmann/json.hpp>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using docmem::engine::JsonFields;
  try {
    const docmem::engine::Json json = docmem::engine::ParseJson(
        {reinterpret_cast<const char*>(data), size}, "input", {.max_bytes = 1 << 16});
    const JsonFields fields(json, "input");
    fields.OptionalString("s");
    fields.OptionalInt("i", -5, 1 << 20);
    fields.OptionalNumber("n");
    fields.OptionalStrings("l");
    if (const auto object = fields.OptionalObject("o")) object->OptionalBool("b");
  } catch (const docmem::engine::Error&) {
  }
  return 0;
}
