#include "server/services/validate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/errors/error.h"

namespace docmem::server {

absl::Status CheckId(const std::string& field, const std::string& id) {
  constexpr size_t kMaxIdBytes = 128;
  const bool fits = !id.empty() && id.size() <= kMaxIdBytes && id.front() != '.' &&
                    std::all_of(id.begin(), id.end(), [](unsigned char c) {
                      return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
                    });
  if (fits) return absl::OkStatus();
  return InvalidField(field, id.empty() ? "is required"
                                        : "must be 1 to 128 of A-Z a-z 0-9 . _ - and not start "
                                          "with a dot");
}

absl::Status CheckCollectionId(const Principal& caller, const std::string& field,
                               const std::string& collection) {
  if (absl::Status status = CheckId(field, collection); !status.ok()) return status;
  if (caller.collections.contains(collection)) return absl::OkStatus();
  return Error(absl::StatusCode::kPermissionDenied, reason::kNotPermitted,
               absl::StrCat("these credentials aren't for the collection '", collection, "'"));
}

absl::Status CheckCollectionId(Call& call, const std::string& field,
                               const std::string& collection) {
  absl::Status status = CheckCollectionId(call.principal(), field, collection);
  if (!absl::IsInvalidArgument(status)) call.About(collection, "");
  return status;
}

absl::StatusOr<std::string> CheckCollection(Call& call, const std::string& collection) {
  const std::string& name = collection.empty() ? kDefaultCollection : collection;
  absl::Status status = CheckCollectionId(call, "collection", name);
  if (!status.ok()) return status;
  return name;
}

absl::StatusOr<store::DocumentKey> CheckKey(Call& call, const std::string& collection,
                                            const std::string& document) {
  absl::StatusOr<std::string> name = CheckCollection(call, collection);
  if (!name.ok()) return name.status();
  if (absl::Status status = CheckId("document", document); !status.ok()) return status;
  call.About(*name, document);
  return store::DocumentKey{*std::move(name), document};
}

absl::Status CheckDigest(const std::string& field, const std::string& digest) {
  constexpr size_t kDigits = 64;
  const bool fits =
      digest.empty() || (digest.size() == kDigits &&
                         digest.find_first_not_of("0123456789abcdef") == std::string::npos);
  if (fits) return absl::OkStatus();
  return InvalidField(field, "must be 64 lower-case hexadecimal digits");
}

absl::Status CheckLength(const std::string& field, const std::string& text, size_t max_bytes) {
  if (text.size() <= max_bytes) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat("has ", text.size(), " bytes; at most ", max_bytes, " are allowed"),
      reason::kLimitExceeded);
}

absl::Status CheckText(const std::string& field, const std::string& text, size_t max_bytes) {
  if (text.empty()) return InvalidField(field, "is required");
  return CheckLength(field, text, max_bytes);
}

absl::Status CheckRatio(const std::string& field, uint32_t ratio_ppm) {
  if (ratio_ppm <= 1'000'000) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("is ", ratio_ppm, "; it must be 0 to 1000000"));
}

absl::StatusOr<store::PageRequest> CheckPage(uint32_t page_size, const std::string& page_token) {
  constexpr uint32_t kMaxPage = 1000;
  if (page_size > kMaxPage) {
    return InvalidField("page_size", absl::StrCat("is ", page_size, "; at most 1000"));
  }
  store::PageRequest page;
  if (page_size != 0) page.size = page_size;
  page.token = page_token;
  return page;
}

absl::Status CheckLabels(const std::string& field, const store::Labels& labels) {
  if (labels.size() > kMaxLabels) {
    return InvalidField(field, absl::StrCat("has ", labels.size(), " entries; at most 32"),
                        reason::kLimitExceeded);
  }
  for (const auto& [key, value] : labels) {
    if (absl::Status status = CheckId(field + " key", key); !status.ok()) return status;
    absl::Status status = CheckLength(field + " value", value, kMaxLabelBytes);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace docmem::server
