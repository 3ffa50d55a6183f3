#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "docmem/v1/common.pb.h"
#include "docmem/v1/document.pb.h"
#include "server/ingest/build.h"

namespace docmem::server {

/// Ratios × profiles in the order asked; no ratios: `default_ratio_ppm`; no profiles: compactor.
/// INVALID_ARGUMENT naming the field; UNIMPLEMENTED for a profile or KV dtype that doesn't exist
/// yet.
absl::StatusOr<std::vector<engine::Compression>> ToCompressions(
    const google::protobuf::RepeatedField<uint32_t>& ratios_ppm,
    const google::protobuf::RepeatedField<int>& profiles, v1::KvDtype kv_dtype,
    uint32_t default_ratio_ppm);

v1::BuildProgress ToMessage(const BuildProgress& progress);
v1::BuildSeconds SecondsOf(const BuildResult& result);
v1::IngestResult ToIngestResult(const BuildResult& result);
v1::BuildCacheResult ToBuildCacheResult(const BuildResult& result);

}  // namespace docmem::server
