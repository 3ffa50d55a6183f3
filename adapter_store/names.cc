#include "adapter_store/names.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/errors.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr size_t kMaxId = 128;
constexpr size_t kMaxFileName = 128;
constexpr size_t kMaxTitle = 512;
constexpr size_t kMaxLabels = 32;
constexpr size_t kMaxLabelValue = 256;
constexpr size_t kMaxName = 1024;
constexpr size_t kMaxDescription = size_t{1} << 20;
constexpr size_t kMaxReason = 1024;
constexpr size_t kSha256Digits = 64;
constexpr uint32_t kMaxRatio = 1000000;
constexpr uint32_t kMaxPage = 1000;

absl::Status Invalid(const std::string& field, const std::string& rule) {
  return StoreError(absl::StatusCode::kInvalidArgument, reason::kInvalidField,
                    absl::StrCat(field, " ", rule), {{"field", field}});
}

// Length of the sequence that starts here, 0 where none that is allowed does.
size_t SequenceLength(const unsigned char* text, size_t left) {
  const unsigned char lead = text[0];
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length == 0 || lead > 0xF4 || length > left) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((text[i] & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && text[1] < 0xA0) || (lead == 0xF0 && text[1] < 0x90);
  const bool surrogate = lead == 0xED && text[1] > 0x9F;
  const bool too_large = lead == 0xF4 && text[1] > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

}  // namespace

bool IsValidId(const std::string& id) {
  return !id.empty() && id.size() <= kMaxId && id.front() != '.' &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

bool IsUtf8(const std::string& text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(bytes + i, text.size() - i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

absl::Status CheckId(const std::string& field, const std::string& id) {
  if (IsValidId(id)) return absl::OkStatus();
  return Invalid(field, "must be 1 to 128 of A-Z a-z 0-9 . _ - and not start with a dot");
}

absl::Status CheckText(const std::string& field, const std::string& text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return Invalid(
        field, absl::StrCat("has ", text.size(), " bytes, at most ", max_bytes, " are allowed"));
  }
  if (text.find('\0') != std::string::npos || !IsUtf8(text)) {
    return Invalid(field, "must be UTF-8 without NUL characters");
  }
  return absl::OkStatus();
}

absl::Status CheckHex(const std::string& field, const std::string& value, size_t digits) {
  const bool hex = std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
  });
  if (hex && value.size() == digits) return absl::OkStatus();
  return Invalid(field, absl::StrCat("must be ", digits, " lower-case hexadecimal digits"));
}

absl::Status CheckFileName(const std::string& name) {
  if (name.empty()) return Invalid("file name", "must not be empty");
  return CheckText("file name", name, kMaxFileName);
}

absl::Status CheckSize(const std::string& field, uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return absl::OkStatus();
  return Invalid(field, absl::StrCat("is ", value, ", larger than 2^63 - 1"));
}

absl::Status CheckKey(const DocumentKey& key) {
  STORE_RETURN_IF_ERROR(CheckId("collection", key.collection));
  return CheckId("document", key.id);
}

absl::Status CheckLabels(const Labels& labels) {
  if (labels.size() > kMaxLabels) {
    return Invalid("labels", absl::StrCat("has ", labels.size(), " entries, at most ", kMaxLabels,
                                          " are allowed"));
  }
  for (const auto& [key, value] : labels) {
    STORE_RETURN_IF_ERROR(CheckId("labels", key));
    STORE_RETURN_IF_ERROR(CheckText("labels", value, kMaxLabelValue));
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const DocumentSpec& spec) {
  STORE_RETURN_IF_ERROR(CheckHex("text_sha256", spec.text_sha256, kSha256Digits));
  STORE_RETURN_IF_ERROR(CheckSize("text_bytes", spec.text_bytes));
  STORE_RETURN_IF_ERROR(CheckText("title", spec.title, kMaxTitle));
  STORE_RETURN_IF_ERROR(CheckText("system_text", spec.system_text, kMaxSystemText));
  return CheckLabels(spec.labels);
}

absl::Status CheckSpec(const CacheSpec& spec) {
  STORE_RETURN_IF_ERROR(CheckHex("cache id", spec.id, kSha256Digits));
  if (spec.ratio_ppm > kMaxRatio) {
    return Invalid("ratio_ppm", absl::StrCat("is ", spec.ratio_ppm, ", at most 1000000"));
  }
  for (const std::string& text : {spec.profile, spec.kv_dtype, spec.writer_adapter_hash,
                                  spec.scorer_adapter_hash, spec.system_text_digest}) {
    STORE_RETURN_IF_ERROR(CheckText("cache", text, kMaxName));
  }
  for (const auto& [key, value] : spec.identity) {
    STORE_RETURN_IF_ERROR(CheckText("identity", key, kMaxName));
    STORE_RETURN_IF_ERROR(CheckText("identity", value, kMaxName));
  }
  STORE_RETURN_IF_ERROR(CheckText("system_text", spec.system_text, kMaxSystemText));
  STORE_RETURN_IF_ERROR(CheckSize("device_bytes", spec.device_bytes));
  return CheckSize("full_bytes", spec.full_bytes);
}

absl::Status CheckSpec(const AdapterSpec& spec) {
  STORE_RETURN_IF_ERROR(CheckHex("adapter hash", spec.hash, kSha256Digits));
  for (const std::string& text : {spec.scope, spec.base_model, spec.prompt_format_digest,
                                  spec.text_digest, spec.training_job_id}) {
    STORE_RETURN_IF_ERROR(CheckText("adapter", text, kMaxName));
  }
  STORE_RETURN_IF_ERROR(CheckText("description", spec.description, kMaxDescription));
  return CheckSize("device_bytes", spec.device_bytes);
}

absl::Status CheckSettings(const CollectionSettings& settings) {
  if (settings.default_ratio_ppm > kMaxRatio) {
    return Invalid("default_ratio_ppm",
                   absl::StrCat("is ", settings.default_ratio_ppm, ", at most 1000000"));
  }
  STORE_RETURN_IF_ERROR(CheckText("default_mode", settings.default_mode, kMaxName));
  return CheckSize("limits.max_bytes", settings.limits.max_bytes);
}

absl::Status CheckPage(const PageRequest& page) {
  if (page.size >= 1 && page.size <= kMaxPage) return absl::OkStatus();
  return Invalid("page_size", absl::StrCat("is ", page.size, ", must be 1 to ", kMaxPage));
}

std::string StorableReason(const std::string& why) {
  std::string result;
  const auto* bytes = reinterpret_cast<const unsigned char*>(why.data());
  for (size_t i = 0; i < why.size();) {
    const size_t length = why[i] == '\0' ? 0 : SequenceLength(bytes + i, why.size() - i);
    const std::string piece = length == 0 ? "?" : why.substr(i, length);
    if (result.size() + piece.size() > kMaxReason) break;
    result += piece;
    i += std::max<size_t>(length, 1);
  }
  return result;
}

}  // namespace docmem::store
