#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

std::string WithField(const std::string& field, const std::string& message) {
  return field.empty() ? message : field + ": " + message;
}

}  // namespace

Error::Error(ErrorKind kind, std::string field, const std::string& message)
    : std::runtime_error(WithField(field, message)), kind_(kind), field_(std::move(field)) {}

const char* ErrorKindName(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return "invalid argument";
    case ErrorKind::kUnimplemented:
      return "unimplemented";
    case ErrorKind::kFailedPrecondition:
      return "failed precondition";
    case ErrorKind::kNotFound:
      return "not found";
    case ErrorKind::kDataLoss:
      return "data loss";
    case ErrorKind::kResourceExhausted:
      return "resource exhausted";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "unknown";
}

void ThrowInvalidArgument(std::string field, const std::string& message) {
  throw Error(ErrorKind::kInvalidArgument, std::move(field), message);
}

void ThrowUnimplemented(std::string field, const std::string& message) {
  throw Error(ErrorKind::kUnimplemented, std::move(field), message);
}

void ThrowFailedPrecondition(std::string field, const std::string& message) {
  throw Error(ErrorKind::kFailedPrecondition, std::move(field), message);
}

void ThrowNotFound(std::string field, const std::string& message) {
  throw Error(ErrorKind::kNotFound, std::move(field), message);
}

void ThrowDataLoss(std::string field, const std::string& message) {
  throw Error(ErrorKind::kDataLoss, std::move(field), message);
}

void ThrowResourceExhausted(std::string field, const std::string& message) {
  throw Error(ErrorKind::kResourceExhausted, std::move(field), message);
}

void ThrowCancelled(const std::string& message) { throw Error(ErrorKind::kCancelled, "", message); }

void ThrowInternal(std::string field, const std::string& message) {
  throw Error(ErrorKind::kInternal, std::move(field), message);
}

}  // namespace docmem::engine
