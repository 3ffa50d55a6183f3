#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapter_store/types.h"
#include "server/interceptors/call.h"
#include "server/interceptors/principal.h"

namespace docmem::server {

inline constexpr char kDefaultCollection[] = "default";

inline constexpr uint64_t kMaxTextBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxAdapterBytes = uint64_t{1} << 30;
inline constexpr size_t kMaxQuestionBytes = 65536;
inline constexpr size_t kMaxSystemTextBytes = 8192;
inline constexpr size_t kMaxTitleBytes = 512;
inline constexpr size_t kMaxLabels = 32;
inline constexpr size_t kMaxLabelBytes = 256;
inline constexpr int kMaxMessageBytes = 4 << 20;

/// Checks of request fields: all INVALID_ARGUMENT naming the field, none quotes a text of users.
/// Those that take a caller or a call are also PERMISSION_DENIED, before any look-up, for a
/// collection that it may not use: whether such a collection exists can't be told.

/// [A-Za-z0-9._-]{1,128}, not starting with a dot.
absl::Status CheckId(const std::string& field, const std::string& id);
/// A collection's id in the field that is named, never empty.
absl::Status CheckCollectionId(const Principal& caller, const std::string& field,
                               const std::string& collection);
/// The same for a call, which is then about that collection.
absl::Status CheckCollectionId(Call& call, const std::string& field, const std::string& collection);
/// Empty: `default`.
absl::StatusOr<std::string> CheckCollection(Call& call, const std::string& collection);
/// The same with a document, which the call is then about.
absl::StatusOr<store::DocumentKey> CheckKey(Call& call, const std::string& collection,
                                            const std::string& document);
/// Empty, or 64 lower-case hexadecimal digits.
absl::Status CheckDigest(const std::string& field, const std::string& digest);
/// LIMIT_EXCEEDED above `max_bytes`.
absl::Status CheckLength(const std::string& field, const std::string& text, size_t max_bytes);
/// Not empty, and as `CheckLength`.
absl::Status CheckText(const std::string& field, const std::string& text, size_t max_bytes);
/// 0 to 1000000.
absl::Status CheckRatio(const std::string& field, uint32_t ratio_ppm);
/// Size 0 becomes 100; at most 1000.
absl::StatusOr<store::PageRequest> CheckPage(uint32_t page_size, const std::string& page_token);
absl::Status CheckLabels(const std::string& field, const store::Labels& labels);

}  // namespace docmem::server
