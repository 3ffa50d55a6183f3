#pragma once

#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/errors/error.h"

namespace docmem::server {

/// Reasons to give where the engine's kind alone doesn't tell; the caller knows what it asked for.
struct EngineReasons {
  const char* invalid_argument = reason::kInvalidField;
  const char* unimplemented = reason::kNotImplemented;
  const char* failed_precondition = reason::kIdentityMismatch;
};

/// The one place where exceptions become a status: the engine's own by kind (its field becomes the
/// detail "field"), std::bad_alloc RESOURCE_EXHAUSTED, everything else INTERNAL.
absl::Status StatusFromException(const std::exception_ptr& exception,
                                 const EngineReasons& reasons = {});

/// What `CatchEngine` gives for a function that returns a `Value`: statuses stay as they are.
template <class Value>
struct Caught {
  using Type = absl::StatusOr<Value>;
};
template <>
struct Caught<absl::Status> {
  using Type = absl::Status;
};
template <class Value>
struct Caught<absl::StatusOr<Value>> {
  using Type = absl::StatusOr<Value>;
};

/// Runs `compute`, which may throw, and gives what it returns or the status of what it threw.
template <class Compute>
auto CatchEngine(Compute&& compute, const EngineReasons& reasons = {}) ->
    typename Caught<decltype(compute())>::Type {
  try {
    return std::forward<Compute>(compute)();
  } catch (...) {
    return StatusFromException(std::current_exception(), reasons);
  }
}

}  // namespace docmem::server
