#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "adapter_store/types.h"

namespace docmem::store {

inline constexpr char kDefaultCollection[] = "default";
inline constexpr size_t kMaxSystemText = 8192;  ///< bytes

/// [A-Za-z0-9._-]{1,128}, not starting with a dot.
bool IsValidId(const std::string& id);
bool IsUtf8(const std::string& text);

/// INVALID_ARGUMENT naming `field` and the rule. A value that isn't valid isn't repeated.
absl::Status CheckId(const std::string& field, const std::string& id);
/// UTF-8 without NUL characters, at most `max_bytes` long.
absl::Status CheckText(const std::string& field, const std::string& text, size_t max_bytes);
/// `digits` lower-case hexadecimal digits.
absl::Status CheckHex(const std::string& field, const std::string& value, size_t digits);
/// Text of 1 to 128 bytes; it never becomes part of a path.
absl::Status CheckFileName(const std::string& name);
/// A number that fits a registry column.
absl::Status CheckSize(const std::string& field, uint64_t value);

absl::Status CheckKey(const DocumentKey& key);
absl::Status CheckLabels(const Labels& labels);
absl::Status CheckSpec(const DocumentSpec& spec);
absl::Status CheckSpec(const CacheSpec& spec);
absl::Status CheckSpec(const AdapterSpec& spec);
absl::Status CheckSettings(const CollectionSettings& settings);
/// At most 1000 items.
absl::Status CheckPage(const PageRequest& page);

/// Text of a failure as it may be stored: what isn't UTF-8 or NUL becomes '?', the rest is cut.
std::string StorableReason(const std::string& why);

}  // namespace docmem::store
