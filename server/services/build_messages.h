#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "docmem/v1/common.pb.h"
#include "docmem/v1/document.pb.h"
#include "server/ingest/build.h"

namespace docmem::server {

/// What is meant where a request says nothing.
struct BuildDefaults {
  uint32_t ratio_ppm = 0;
  std::string kv_dtype;  ///< the model's own, see `Builds::kv_dtype`
};

/// Ratios × profiles in the order asked; no profiles: compactor. INVALID_ARGUMENT naming the field.
absl::StatusOr<std::vector<engine::Compression>> ToCompressions(
    const google::protobuf::RepeatedField<uint32_t>& ratios_ppm,
    const google::protobuf::RepeatedField<int>& profiles, v1::KvDtype kv_dtype,
    const BuildDefaults& defaults);

v1::BuildProgress ToMessage(const BuildProgress& progress);
v1::BuildSeconds SecondsOf(const BuildResult& result);
v1::IngestResult ToIngestResult(const BuildResult& result);
v1::BuildCacheResult ToBuildCacheResult(const BuildResult& result);

}  // namespace docmem::server
