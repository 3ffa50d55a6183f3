#include "server/errors/from_exception.h"

#include <new>
#include <string>

#include "engine/formats/error.h"

namespace docmem::server {
namespace {

struct Translation {
  absl::StatusCode code;
  const char* reason;
};

Translation Translate(engine::ErrorKind kind, const EngineReasons& reasons) {
  switch (kind) {
    case engine::ErrorKind::kInvalidArgument:
      return {absl::StatusCode::kInvalidArgument, reasons.invalid_argument};
    case engine::ErrorKind::kUnimplemented:
      return {absl::StatusCode::kUnimplemented, reasons.unimplemented};
    case engine::ErrorKind::kFailedPrecondition:
      return {absl::StatusCode::kFailedPrecondition, reasons.failed_precondition};
    case engine::ErrorKind::kNotFound:
      return {absl::StatusCode::kNotFound, reason::kCacheNotFound};
    case engine::ErrorKind::kDataLoss:
      return {absl::StatusCode::kDataLoss, reason::kArtifactDamaged};
    case engine::ErrorKind::kResourceExhausted:
      return {absl::StatusCode::kResourceExhausted, reason::kDeviceBudgetExceeded};
    case engine::ErrorKind::kCancelled:
      return {absl::StatusCode::kCancelled, reason::kClientGone};
    case engine::ErrorKind::kInternal:
      break;
  }
  return {absl::StatusCode::kInternal, reason::kNumericFault};
}

}  // namespace

absl::Status StatusFromException(const std::exception_ptr& exception,
                                 const EngineReasons& reasons) {
  try {
    std::rethrow_exception(exception);
  } catch (const engine::Error& error) {
    const Translation to = Translate(error.kind(), reasons);
    ErrorDetails details;
    if (!error.field().empty()) details["field"] = error.field();
    return Error(to.code, to.reason, error.what(), details);
  } catch (const std::bad_alloc&) {
    return Error(absl::StatusCode::kResourceExhausted, reason::kDeviceBudgetExceeded,
                 "out of memory; lower --device-budget or --max-sequences");
  } catch (const std::exception& error) {
    return Error(absl::StatusCode::kInternal, reason::kInternalFault,
                 std::string("internal fault: ") + error.what());
  } catch (...) {
    return Error(absl::StatusCode::kInternal, reason::kInternalFault, "internal fault");
  }
}

}  // namespace docmem::server
