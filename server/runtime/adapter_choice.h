#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "adapter_store/adapter_store.h"
#include "engine/text/prompt_format.h"

namespace docmem::server {

/// Which adapter of a document is wanted.
struct AdapterWish {
  uint32_t version = 0;         ///< 0: the current one
  bool allow_mismatch = false;  ///< also one made for another prompt format or text
};

/// The adapter of `document` that shall work with it. Blocks on the registry. FAILED_PRECONDITION
/// (NO_CURRENT_ADAPTER, ADAPTER_STALE, ADAPTER_MISMATCH), NOT_FOUND (ADAPTER_NOT_FOUND), DATA_LOSS
/// (ARTIFACT_DAMAGED).
absl::StatusOr<store::Adapter> ChooseAdapter(store::AdapterStore& store,
                                             const engine::PromptFormat& running_format,
                                             const store::Document& document,
                                             const AdapterWish& wish);

/// How messages name a document.
std::string NameOf(const store::DocumentKey& key);

}  // namespace docmem::server
