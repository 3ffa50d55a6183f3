#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace docmem::server {

/// What the daemon will need beside everything else in the process.
inline constexpr uint64_t kMemoryReserveBytes = uint64_t{512} << 20;

/// Main memory that settings and model ask for, in bytes.
struct MemoryPlan {
  uint64_t weights = 0;
  uint64_t device_budget = 0;
  uint64_t host_budget = 0;
  uint64_t kv_budget = 0;
  uint64_t prefill_peak = 0;     ///< of one ingestion at the longest context, without its result
  uint64_t ingested_result = 0;  ///< its whole cache, at ratio 0, until it is published
};

/// The plan with the reserve as a sum for people: "weights 300 MiB + … + reserve 512 MiB =
/// 1024 MiB". Parts of 0 bytes aren't named.
std::string Arithmetic(const MemoryPlan& plan);

/// RESOURCE_EXHAUSTED with the arithmetic when the plan and the reserve exceed `limit_bytes`.
absl::Status CheckMemory(const MemoryPlan& plan, uint64_t limit_bytes);

/// The smallest of the machine's memory and the process's cgroup limits (v1 or v2), read from the
/// files below `root`, which is "/" outside tests.
uint64_t ReadMemoryLimit(const std::string& root);

/// Length of all *.safetensors files of a model folder: what loading it will take at least.
uint64_t WeightFileBytes(const std::string& model_folder);

}  // namespace docmem::server
