#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace docmem::store {

/// Where a page ended, as text that callers hand back. It names the last item, so it holds while
/// items are inserted and deleted, and the list (with its order and filter) that it belongs to.
std::string MakePageToken(const std::string& list, const std::string& last_key);

/// The key; INVALID_ARGUMENT unless `token` was made for `list`.
absl::StatusOr<std::string> ReadPageToken(const std::string& list, const std::string& token);

}  // namespace docmem::store
