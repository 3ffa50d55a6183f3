#include "client/cli/report.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/error.h"

namespace docmem::cli {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

// What the user of this program can do about a reason.
std::string AdviceOn(const std::string& reason) {
  static const auto& advice = *new std::map<std::string, std::string>{
      {"DOCUMENT_EXISTS", "--replace with --revision overwrites it"},
      {"OPTIONS_DIFFER", "docmem update changes them"},
      {"CACHE_NOT_FOUND", "docmem cache build makes one; ask --build does so first"},
      {"COLLECTION_NOT_EMPTY", "--force deletes its documents with it"},
      {"ADAPTER_MISMATCH", "--allow-adapter-mismatch uses it all the same"},
      {"ADAPTER_OTHER_BASE", "--allow-other-base accepts another name"},
      {"NO_CURRENT_ADAPTER", "docmem adapter use chooses one"},
      {"CREDENTIALS_MISSING", "--token-file or DOCMEM_TOKEN brings a token"},
      {"CREDENTIALS_INVALID", "the daemon's operator makes one: docmem token new"}};
  const auto found = advice.find(reason);
  return found == advice.end() ? "" : found->second;
}

std::string Hint(const absl::Status& status, const client::ErrorDetail& detail) {
  if (detail.retry_delay) {
    return absl::StrCat("try again in ", FormatSeconds(absl::ToDoubleSeconds(*detail.retry_delay)));
  }
  if (!detail.reason.empty()) return AdviceOn(detail.reason);
  if (absl::IsUnavailable(status)) {
    return "is docmemd running there? --address or DOCMEM_ADDRESS names another";
  }
  if (absl::IsDeadlineExceeded(status)) return "--timeout SECONDS allows more time";
  return "";
}

Members Details(const client::ErrorDetail& detail) {
  Members details;
  if (!detail.field.empty()) details.emplace_back("field", JsonString(detail.field));
  if (!detail.resource_type.empty()) {
    details.emplace_back("resource", JsonObject({{"type", JsonString(detail.resource_type)},
                                                 {"name", JsonString(detail.resource_name)}}));
  }
  if (detail.retry_delay) {
    details.emplace_back("retryDelaySeconds",
                         absl::StrFormat("%g", absl::ToDoubleSeconds(*detail.retry_delay)));
  }
  if (!detail.metadata.empty()) {
    Members metadata;
    for (const auto& [key, value] : detail.metadata) metadata.emplace_back(key, JsonString(value));
    details.emplace_back("metadata", JsonObject(metadata));
  }
  return details;
}

}  // namespace

void PrintError(const absl::Status& status, std::ostream& err) {
  err << "docmem: " << PrintableLine(std::string(status.message())) << '\n';
  if (IsUsageError(status)) return;
  const client::ErrorDetail detail = client::DetailOf(status);
  const auto line = [&err](const std::string& name, const std::string& value) {
    if (!value.empty()) err << "  " << name << ": " << PrintableLine(value) << '\n';
  };
  line("reason", detail.reason);
  line("field", detail.field);
  for (const auto& [key, value] : detail.metadata) {
    if (!absl::StrContains(status.message(), value)) line(key, value);
  }
  line("hint", Hint(status, detail));
}

void PrintErrorJson(const absl::Status& status, std::ostream& err) {
  const client::ErrorDetail detail = client::DetailOf(status);
  const std::string error =
      JsonObject({{"code", JsonString(absl::StatusCodeToString(status.code()))},
                  {"reason", JsonString(IsUsageError(status) ? "USAGE" : detail.reason)},
                  {"message", JsonString(std::string(status.message()))},
                  {"details", JsonObject(Details(detail))}});
  err << JsonObject({{"error", error}}) << '\n';
}

}  // namespace docmem::cli
