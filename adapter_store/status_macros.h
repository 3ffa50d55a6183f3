#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Private to the store's sources and tests.

#define STORE_CONCAT_(a, b) a##b
#define STORE_CONCAT(a, b) STORE_CONCAT_(a, b)

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration can't stand in parentheses.
#define STORE_RETURN_IF_ERROR_(status, expression)                       \
  do {                                                                   \
    if (absl::Status status = (expression); !status.ok()) return status; \
  } while (false)
#define STORE_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return result.status();                      \
  declaration = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

/// Returns a failure to the caller.
#define STORE_RETURN_IF_ERROR(expression) \
  STORE_RETURN_IF_ERROR_(STORE_CONCAT(store_status_, __COUNTER__), expression)

/// Assigns the value of a StatusOr, or returns its failure to the caller.
#define STORE_ASSIGN_OR_RETURN(declaration, expression) \
  STORE_ASSIGN_OR_RETURN_(STORE_CONCAT(store_result_, __COUNTER__), declaration, expression)
