#include "adapter_store/page_token.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/digest.h"

namespace docmem::store {
namespace {

constexpr size_t kGuardBytes = 16;

std::string GuardOf(const std::string& list, const std::string& key) {
  return absl::StrCat(
      absl::Hex(Xxh3Of(absl::StrCat(list.size(), ":", list, key)), absl::kZeroPad16));
}

}  // namespace

std::string MakePageToken(const std::string& list, const std::string& last_key) {
  return absl::WebSafeBase64Escape(absl::StrCat(GuardOf(list, last_key), last_key));
}

absl::StatusOr<std::string> ReadPageToken(const std::string& list, const std::string& token) {
  std::string decoded;
  if (absl::WebSafeBase64Unescape(token, &decoded) && decoded.size() >= kGuardBytes) {
    std::string key = decoded.substr(kGuardBytes);
    if (decoded.substr(0, kGuardBytes) == GuardOf(list, key)) return key;
  }
  return StoreError(absl::StatusCode::kInvalidArgument, reason::kInvalidField,
                    "page_token isn't one that this list gave; start again without one",
                    {{"field", "page_token"}});
}

}  // namespace docmem::store
