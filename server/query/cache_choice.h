#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "adapter_store/types.h"
#include "engine/artifacts/mode.h"
#include "engine/model/model_identity.h"
#include "server/query/question.h"

namespace docmem::server {

/// What a question's mode asks of its cache.
struct CacheMakers {
  engine::Mode mode = engine::Mode::kBase;
  std::string adapter_hash;       ///< of the question's adapter; empty: none
  engine::ModelIdentity running;  ///< the model that answers
};

/// The cache of `document` that a question asks for: by id, by ratio and profile, or the default
/// one. Only what goes with `makers` is ever chosen: a cache that an adapter wrote or scored in
/// that very mode of that very adapter, or in the other modes one of the base model. Where the
/// default doesn't go with them, the cache made like it that does takes its place.
///
/// Nothing where none matches and the question asks to build it. NOT_FOUND with what exists,
/// INVALID_ARGUMENT (CACHE_AMBIGUOUS), FAILED_PRECONDITION (IDENTITY_MISMATCH) for a cache of
/// another model, or chosen by its id and of other makers; DATA_LOSS for a damaged one.
absl::StatusOr<std::optional<store::Cache>> ChooseCache(const Question& question,
                                                        const CacheMakers& makers,
                                                        const store::Document& document);

}  // namespace docmem::server
