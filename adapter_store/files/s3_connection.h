#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapter_store/files/s3_place.h"
#include "adapter_store/sync.h"

namespace docmem::store {

struct S3Patience {
  int tries = 6;
  absl::Duration first_delay = absl::Milliseconds(100);  ///< doubles, plus or minus a half
  absl::Duration connect = absl::Seconds(3);
  absl::Duration stall = absl::Seconds(10);      ///< below 1 kB/s, or until the answer begins
  absl::Duration all_tries = absl::Seconds(15);  ///< no other try begins afterwards
  /// After a call for which no try helped others fail at once for so long.
  absl::Duration down = absl::Seconds(3);
};

struct S3Request {
  std::string method;  ///< GET, HEAD, PUT, POST or DELETE
  std::string key;     ///< without the place's prefix; empty: the bucket itself
  /// Sorted by name; values are encoded here.
  std::vector<std::pair<std::string, std::string>> query;
  std::span<const std::byte> body;
  /// GET of an object: filled from the front with the answer's body, else the body is text.
  std::span<std::byte> into;
};

struct S3Response {
  long code = 0;  ///< of HTTP
  std::string text;
  std::string etag;
  uint64_t length = 0;  ///< what Content-Length said
};

/// Sends signed requests (AWS Signature Version 4 by libcurl, addressed as ENDPOINT/BUCKET/KEY).
/// What may help is tried again: broken connections, stalls, bodies that were damaged on the way,
/// 408, 429, 5xx; a GET goes on where it was cut. Thread-safe; keeps connections open; blocks on
/// the network.
class S3Connection {
 public:
  S3Connection(S3Place place, S3Patience patience);
  ~S3Connection();
  S3Connection(const S3Connection&) = delete;
  S3Connection& operator=(const S3Connection&) = delete;

  const S3Place& place() const { return place_; }
  /// OK: the answer, of a code from 200 to 299 or 404. Else: PERMISSION_DENIED (401, 403),
  /// FAILED_PRECONDITION (redirects and other refusals), RESOURCE_EXHAUSTED (no space or quota),
  /// DATA_LOSS (a body that isn't as long as `into`), UNAVAILABLE (what stayed broken).
  absl::StatusOr<S3Response> Send(const S3Request& request);

 private:
  struct Easy;
  struct Transfer;

  std::unique_ptr<Easy> Take();
  void Give(std::unique_ptr<Easy> easy);
  /// One try; true in the second where another may help.
  std::pair<absl::StatusOr<S3Response>, bool> Try(const S3Request& request, size_t* received);

  const S3Place place_;
  const S3Patience patience_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Easy>> idle_ ABSL_GUARDED_BY(mutex_);
  absl::Time down_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace docmem::store
