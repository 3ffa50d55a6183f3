#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace docmem::engine {

// The reasons for which the engine refuses or gives up. They mean what the gRPC codes of the same
// names mean; the engine itself knows neither gRPC nor abseil.
enum class ErrorKind {
  kInvalidArgument,     // malformed or over a limit: the same input will never be accepted
  kUnimplemented,       // well-formed, but asks for something this engine doesn't do
  kFailedPrecondition,  // would be fine with another model, format or state
  kNotFound,
  kDataLoss,  // a stored file differs from what was written
  kResourceExhausted,
  kCancelled,
  kInternal,  // one of our own invariants is broken, or a result is not finite
};

// The one exception type that `engine/` throws on purpose. Anything else that escapes (from
// libtorch or the standard library) counts as internal.
//
// what() reads "<field>: <message>" (without the prefix if `field` is empty) and is written for
// people. It never holds text of users: no document, question or answer.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string field, const std::string& message);

  ErrorKind kind() const noexcept { return kind_; }

  // The JSON field, tensor, file or argument that is at fault, or empty.
  const std::string& field() const noexcept { return field_; }

 private:
  ErrorKind kind_;
  std::string field_;
};

// "invalid argument", "data loss" and so on, for messages and logs.
const char* ErrorKindName(ErrorKind kind) noexcept;

[[noreturn]] void ThrowInvalidArgument(std::string field, const std::string& message);
[[noreturn]] void ThrowUnimplemented(std::string field, const std::string& message);
[[noreturn]] void ThrowFailedPrecondition(std::string field, const std::string& message);
[[noreturn]] void ThrowNotFound(std::string field, const std::string& message);
[[noreturn]] void ThrowDataLoss(std::string field, const std::string& message);
[[noreturn]] void ThrowResourceExhausted(std::string field, const std::string& message);
[[noreturn]] void ThrowCancelled(const std::string& message);
[[noreturn]] void ThrowInternal(std::string field, const std::string& message);

}  // namespace docmem::engine
