#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace docmem::store {

/// The answers of S3 that we read, and what we send. Anything else than the wanted element is
/// UNAVAILABLE showing the text's start: proxies answer in the name of a server that is down.

struct S3Listing {
  std::vector<std::string> keys;
  bool more = false;
};
/// Of ListObjectsV2.
absl::StatusOr<S3Listing> ReadListing(const std::string& xml);

struct S3Uploads {
  std::vector<std::pair<std::string, std::string>> uploads;  ///< key and id
  bool more = false;
};
/// Of ListMultipartUploads.
absl::StatusOr<S3Uploads> ReadUploads(const std::string& xml);

/// The id in the answer to CreateMultipartUpload.
absl::StatusOr<std::string> ReadUploadId(const std::string& xml);
/// CompleteMultipartUpload may fail with the code 200.
absl::Status ReadCompletion(const std::string& xml);
/// The body of CompleteMultipartUpload; parts count from 1.
std::string CompletionXml(const std::vector<std::string>& etags);

/// Of a foreign text what a message may show: its start, in printable ASCII.
std::string ShownText(const std::string& text);

/// Code and message of an error, "NoSuchKey: …"; the text's start where it isn't one.
std::string ReadErrorText(const std::string& xml);

}  // namespace docmem::store
