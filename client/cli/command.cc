#include "client/cli/command.h"

#include "absl/strings/cord.h"

namespace docmem::cli {
namespace {

constexpr char kUsageMark[] = "docmem/usage";

}  // namespace

absl::Status UsageError(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsageMark, absl::Cord());
  return status;
}

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsageMark).has_value(); }

}  // namespace docmem::cli
