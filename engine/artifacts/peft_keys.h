#pragma once

#include "engine/formats/json_fields.h"

namespace docmem::engine {

/// Checks every key of an `adapter_config.json` that isn't read as a setting: harmless ones may
/// have any value, all others must be at their neutral value (null, false, [], {}), as PEFT writes
/// features that are off. Also checks `peft_type`, `task_type`, `bias` and `init_lora_weights`.
/// Throws `kUnimplemented` with the key as the field, `kInvalidArgument` for malformed values.
void RequireSupportedKeys(const JsonFields& config);

}  // namespace docmem::engine
