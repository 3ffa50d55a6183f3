#include "server/errors/to_grpc.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

std::string ReasonOrDefault(const absl::Status& status) {
  std::string given = store::ReasonOf(status);
  if (!given.empty()) return given;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return reason::kInvalidField;
    case absl::StatusCode::kNotFound:
      return reason::kDocumentNotFound;
    case absl::StatusCode::kAborted:
      return reason::kRevisionMismatch;
    case absl::StatusCode::kDataLoss:
      return reason::kArtifactDamaged;
    case absl::StatusCode::kResourceExhausted:
      return reason::kDiskFull;
    case absl::StatusCode::kDeadlineExceeded:
      return reason::kDeadlinePassed;
    case absl::StatusCode::kCancelled:
      return reason::kClientGone;
    case absl::StatusCode::kUnavailable:
      return reason::kRegistryUnavailable;
    case absl::StatusCode::kUnimplemented:
      return reason::kNotImplemented;
    default:
      return reason::kInternalFault;
  }
}

grpc::StatusCode CodeOf(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kUnknown) return grpc::StatusCode::INTERNAL;
  if (status.code() == absl::StatusCode::kOutOfRange) return grpc::StatusCode::INVALID_ARGUMENT;
  return static_cast<grpc::StatusCode>(status.code());
}

bool IsOneOf(const std::string& reason, std::initializer_list<const char*> reasons) {
  return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
}

std::optional<std::chrono::milliseconds> RetryAfter(const std::string& reason,
                                                    const ErrorDetails& details) {
  const auto given = details.find("retry_after_ms");
  int64_t milliseconds = 0;
  if (given != details.end() && absl::SimpleAtoi(given->second, &milliseconds)) {
    return std::chrono::milliseconds(milliseconds);
  }
  if (IsOneOf(reason,
              {reason::kQueueFull, reason::kQuotaMaxInFlight, reason::kQuotaMaxQueued,
               reason::kRegistryUnavailable, reason::kArtifactsUnavailable, reason::kStarting})) {
    return std::chrono::seconds(1);
  }
  if (IsOneOf(reason, {reason::kDraining, reason::kShuttingDown})) return std::chrono::seconds(5);
  return std::nullopt;
}

std::string CutAtCharacter(std::string text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

// "DOCUMENT_NOT_FOUND" is about the detail "document", and so on.
std::optional<google::rpc::ResourceInfo> ResourceOf(const std::string& reason,
                                                    const ErrorDetails& details) {
  google::rpc::ResourceInfo resource;
  if (details.contains("resource_type")) {
    resource.set_resource_type(details.at("resource_type"));
    if (details.contains("resource_name")) resource.set_resource_name(details.at("resource_name"));
    return resource;
  }
  for (const char* type : {"collection", "document", "cache", "adapter"}) {
    std::string prefix = type;
    std::transform(prefix.begin(), prefix.end(), prefix.begin(), ::toupper);
    if (reason.rfind(prefix + "_", 0) == 0 && details.contains(type)) {
      resource.set_resource_type(type);
      resource.set_resource_name(details.at(type));
      return resource;
    }
  }
  return std::nullopt;
}

google::rpc::ErrorInfo InfoOf(const std::string& reason, ErrorDetails details, size_t max_bytes) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("docmem");
  for (;;) {
    info.mutable_metadata()->clear();
    for (const auto& [key, value] : details) (*info.mutable_metadata())[key] = value;
    if (info.ByteSizeLong() <= max_bytes || details.empty()) return info;
    const auto longest = std::max_element(
        details.begin(), details.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (longest->second.size() <= 64) {
      details.erase(longest);
    } else {
      longest->second = CutAtCharacter(longest->second, longest->second.size() / 2);
    }
  }
}

void AddBadRequest(const std::string& field, const std::string& message, google::rpc::Status* out) {
  google::rpc::BadRequest bad;
  auto* violation = bad.add_field_violations();
  violation->set_field(CutAtCharacter(field, 256));
  violation->set_description(CutAtCharacter(message, 256));
  out->add_details()->PackFrom(bad);
}

void AddRetry(std::chrono::milliseconds delay, google::rpc::Status* out) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(delay.count() / 1000);
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay.count() % 1000 * 1'000'000));
  out->add_details()->PackFrom(retry);
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message = CutAtCharacter(std::string(status.message()), kMaxErrorMessageBytes);
  const std::string reason = ReasonOrDefault(status);
  const ErrorDetails details = store::DetailsOf(status);

  google::rpc::Status out;
  out.set_code(CodeOf(status));
  out.set_message(message);
  const auto field = details.find("field");
  if (status.code() == absl::StatusCode::kInvalidArgument && field != details.end()) {
    AddBadRequest(field->second, message, &out);
  }
  if (const auto delay = RetryAfter(reason, details)) AddRetry(*delay, &out);
  if (auto resource = ResourceOf(reason, details)) {
    resource->set_resource_name(CutAtCharacter(resource->resource_name(), 256));
    out.add_details()->PackFrom(*resource);
  }
  constexpr size_t kEnvelopeBytes = 64;
  const size_t left = kMaxErrorDetailsBytes - out.ByteSizeLong() - kEnvelopeBytes;
  out.add_details()->PackFrom(InfoOf(reason, details, left));
  return {CodeOf(status), message, out.SerializeAsString()};
}

}  // namespace docmem::server
