#include "client/error.h"

#include "client/internal/rpc_status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace docmem::client {
namespace {

void Read(const google::protobuf::Any& any, ErrorDetail* detail) {
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad_request;
  google::rpc::ResourceInfo resource;
  google::rpc::RetryInfo retry;
  if (any.UnpackTo(&info) && info.domain() == internal::kErrorDomain) {
    detail->reason = info.reason();
    detail->metadata = {info.metadata().begin(), info.metadata().end()};
  } else if (any.UnpackTo(&bad_request) && bad_request.field_violations_size() > 0) {
    detail->field = bad_request.field_violations(0).field();
  } else if (any.UnpackTo(&resource)) {
    detail->resource_type = resource.resource_type();
    detail->resource_name = resource.resource_name();
  } else if (any.UnpackTo(&retry)) {
    detail->retry_delay = absl::Seconds(retry.retry_delay().seconds()) +
                          absl::Nanoseconds(retry.retry_delay().nanos());
  }
}

}  // namespace

ErrorDetail DetailOf(const absl::Status& status) {
  ErrorDetail detail;
  const auto payload = status.GetPayload(internal::kDetailsUrl);
  google::rpc::Status details;
  if (!payload || !details.ParseFromString(std::string(*payload))) return detail;
  for (const auto& any : details.details()) Read(any, &detail);
  return detail;
}

}  // namespace docmem::client
