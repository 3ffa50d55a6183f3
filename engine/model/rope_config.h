#pragma once

#include "engine/formats/json_fields.h"
#include "engine/model/model_config.h"

namespace docmem::engine {

/// Resolves the rotary embedding of a `config.json`, in either spelling or both when they agree.
/// Defaults of missing fields are those of transformers (modeling_rope_utils), except that a
/// missing `rope_theta` is refused: its default would silently be a wrong model. Throws
/// `kUnimplemented` for a type or field that isn't understood, `kInvalidArgument` for malformed or
/// disagreeing ones.
RopeConfig ParseRopeConfig(const JsonFields& config, int64_t max_positions);

}  // namespace docmem::engine
