#include "engine/model/lora.h"

namespace docmem::engine {

LinearShape ShapeOf(Module module, const ModelConfig& config) {
  const int64_t query = config.query_heads * config.head_dim;
  const int64_t kv = config.kv_heads * config.head_dim;
  switch (module) {
    case Module::kQ:
      return {query, config.hidden_size};
    case Module::kK:
    case Module::kV:
      return {kv, config.hidden_size};
    case Module::kO:
      return {config.hidden_size, query};
    case Module::kGate:
    case Module::kUp:
      return {config.intermediate_size, config.hidden_size};
    case Module::kDown:
      return {config.hidden_size, config.intermediate_size};
  }
  return {};
}

}  // namespace docmem::engine
