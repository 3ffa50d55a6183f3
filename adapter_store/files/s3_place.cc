#include "adapter_store/files/s3_place.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr char kScheme[] = "s3://";
constexpr char kDefaultRegion[] = "us-east-1";

// Characters that need no encoding in a URL, so that what is signed is what is sent.
bool IsPlain(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

absl::Status Invalid(const std::string& where, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", where, "' ", what, "; it should be s3://BUCKET or s3://BUCKET/PREFIX"));
}

absl::Status TakeNames(const std::string& where, S3Place& place) {
  const std::vector<std::string> names = absl::StrSplit(where.substr(sizeof(kScheme) - 1), '/');
  place.bucket = names.front();
  for (size_t i = 0; i < names.size(); ++i) {
    const bool trailing = i > 0 && i + 1 == names.size() && names[i].empty();
    if (trailing) break;
    if (names[i].empty() || names[i] == "." || names[i] == ".." || !IsPlain(names[i])) {
      return Invalid(where, "has a name that isn't of letters, digits and . _ -");
    }
    if (i > 0) absl::StrAppend(&place.prefix, names[i], "/");
  }
  return absl::OkStatus();
}

absl::Status CheckEndpoint(const std::string& endpoint) {
  const bool secure = absl::StartsWith(endpoint, "https://");
  const size_t scheme = secure ? sizeof("https://") - 1 : sizeof("http://") - 1;
  const std::string host = endpoint.substr(std::min(scheme, endpoint.size()));
  const bool plain = std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains(".-:[]_", static_cast<char>(c));
  });
  if ((secure || absl::StartsWith(endpoint, "http://")) && !host.empty() && plain) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "AWS_ENDPOINT_URL is '", endpoint, "'; it should be https://HOST or https://HOST:PORT"));
}

}  // namespace

absl::StatusOr<S3Place> ParseS3Place(const std::string& where,
                                     absl::FunctionRef<const char*(const char*)> variable) {
  if (!absl::StartsWith(where, kScheme)) return Invalid(where, "isn't a place in S3");
  const auto first_of = [&](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names) {
      const char* value = variable(name);
      if (value != nullptr && *value != '\0') return value;
    }
    return "";
  };
  S3Place place;
  STORE_RETURN_IF_ERROR(TakeNames(where, place));
  place.region = first_of({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (place.region.empty()) place.region = kDefaultRegion;
  if (!IsPlain(place.region)) {
    return absl::InvalidArgumentError("AWS_REGION isn't of letters, digits and . _ -");
  }
  place.endpoint = first_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (place.endpoint.empty()) {
    place.endpoint = absl::StrCat("https://s3.", place.region, ".amazonaws.com");
  }
  place.endpoint = std::string(absl::StripSuffix(place.endpoint, "/"));
  STORE_RETURN_IF_ERROR(CheckEndpoint(place.endpoint));
  place.access_key = first_of({"AWS_ACCESS_KEY_ID"});
  place.secret_key = first_of({"AWS_SECRET_ACCESS_KEY"});
  place.session_token = first_of({"AWS_SESSION_TOKEN"});
  place.ca_file = first_of({"AWS_CA_BUNDLE"});
  if (place.access_key.empty() || place.secret_key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", where,
                     "' needs a key: set the variables AWS_ACCESS_KEY_ID and "
                     "AWS_SECRET_ACCESS_KEY"));
  }
  // In the middle of a line of HTTP they would begin another one.
  for (const std::string* secret : {&place.access_key, &place.secret_key, &place.session_token}) {
    if (std::any_of(secret->begin(), secret->end(), [](unsigned char c) { return c <= ' '; })) {
      return absl::InvalidArgumentError(
          "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN has a space or a line "
          "break in it");
    }
  }
  return place;
}

}  // namespace docmem::store
