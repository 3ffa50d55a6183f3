#pragma once

#include <cstdint>
#include <string>

namespace docmem::server {

/// What is known of the loaded model.
struct ModelFacts {
  std::string name, family, dtype, device;
  uint64_t parameters = 0;
  uint32_t layers = 0;
  uint32_t positions = 0;
  uint32_t vocabulary = 0;
  uint64_t weight_bytes = 0;
  std::string weights_digest, config_digest, tokenizer_digest;
  std::string prompt_format, prompt_format_digest;
};

struct LimitFacts {
  uint32_t max_adapter_rank = 0;
  uint32_t max_queue = 0;
  uint32_t max_sequences = 0;
  uint32_t max_batch_tokens = 0;
  uint32_t question_reserve_tokens = 0;
};

/// Requests by what they wait for.
struct QueueFacts {
  uint32_t waiting = 0;
  uint32_t loading = 0;
  uint32_t running = 0;
  uint32_t building = 0;
};

}  // namespace docmem::server
