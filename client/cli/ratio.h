#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/arguments.h"

namespace docmem::cli {

/// A compression ratio written as a decimal from 0 to 1, such as "0.95", in millionths, exactly.
/// INVALID_ARGUMENT also for more than six digits after the point: nothing is rounded.
absl::StatusOr<uint32_t> ParseRatio(const std::string& text);

/// 950000 as "0.95".
std::string FormatRatio(uint32_t ratio_ppm);

Value Ratio(std::optional<uint32_t>* ratio_ppm);

/// One or more ratios, comma separated.
Value Ratios(std::vector<uint32_t>* ratio_ppm);

}  // namespace docmem::cli
