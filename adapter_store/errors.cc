#include "adapter_store/errors.h"

#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace docmem::store {
namespace {

constexpr char kReasonPayload[] = "docmem.store/reason";
constexpr char kDetailPayload[] = "docmem.store/detail/";

}  // namespace

absl::Status StoreError(absl::StatusCode code, const char* reason, const std::string& message,
                        const ErrorDetails& details) {
  absl::Status status(code, message);
  status.SetPayload(kReasonPayload, absl::Cord(reason));
  for (const auto& [key, value] : details) {
    status.SetPayload(absl::StrCat(kDetailPayload, key), absl::Cord(value));
  }
  return status;
}

std::string ReasonOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kReasonPayload);
  return payload.has_value() ? std::string(*payload) : std::string();
}

ErrorDetails DetailsOf(const absl::Status& status) {
  ErrorDetails details;
  const size_t prefix = sizeof(kDetailPayload) - 1;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    if (url.substr(0, prefix) == kDetailPayload) {
      details.emplace(std::string(url.substr(prefix)), std::string(value));
    }
  });
  return details;
}

absl::Status WithContext(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  absl::Status result(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& value) { result.SetPayload(url, value); });
  return result;
}

}  // namespace docmem::store
