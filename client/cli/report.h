#pragma once

#include <ostream>

#include "absl/status/status.h"

namespace docmem::cli {

/// Tells people a failure: message, reason, field, what else the message doesn't say, and what to
/// do.
void PrintError(const absl::Status& status, std::ostream& err);

/// Tells a program: {"error": {"code", "reason", "message", "details"}} on one line.
void PrintErrorJson(const absl::Status& status, std::ostream& err);

}  // namespace docmem::cli
