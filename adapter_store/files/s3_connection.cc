#include "adapter_store/files/s3_connection.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/digest.h"
#include "adapter_store/files/s3_xml.h"

namespace docmem::store {
namespace {

constexpr size_t kMaxText = size_t{2} << 20;  // a page of 1,000 keys has less than 1 MiB
constexpr int kMaxDoublings = 5;

template <class Value>
void Set(CURL* curl, CURLoption option, Value value) {
  curl_easy_setopt(curl, option, value);  // fails for options that this libcurl lacks only
}

std::string Encoded(const std::string& text) {
  std::string encoded;
  for (const unsigned char c : text) {
    if (absl::ascii_isalnum(c) || absl::StrContains("-._~", static_cast<char>(c))) {
      encoded += static_cast<char>(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", c);  // signed so: the digits must be large
    }
  }
  return encoded;
}

std::string UrlOf(const S3Place& place, const S3Request& request) {
  std::string url = absl::StrCat(place.endpoint, "/", place.bucket);
  if (!request.key.empty()) absl::StrAppend(&url, "/", place.prefix, request.key);
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    absl::StrAppend(&url, std::string(1, separator), name, "=", Encoded(value));
    separator = '&';
  }
  return url;
}

// The code in an error's XML, such as "NoSuchKey".
std::string CodeOf(const std::string& body) {
  const std::string text = ReadErrorText(body);
  return text.substr(0, text.find(':'));
}

bool MayPass(long http, const std::string& code) {
  return http == 408 || http == 429 || (http >= 500 && http != 507) || code == "RequestTimeout" ||
         code == "BadDigest" || code == "XAmzContentSHA256Mismatch";
}

bool IsFull(long http, const std::string& code) {
  return http == 507 || code == "QuotaExceeded" || code == "XMinioAdminBucketQuotaExceeded" ||
         code == "XMinioStorageFull";
}

std::string What(const S3Request& request) {
  return absl::StrCat("S3: ", request.method, " '", request.key.empty() ? "(bucket)" : request.key,
                      "'");
}

absl::Status Refused(const S3Request& request, long code, const std::string& body) {
  const std::string why = ReadErrorText(body);
  const std::string message =
      absl::StrCat(What(request), " got ", code, why.empty() ? "" : " ", why);
  if (IsFull(code, CodeOf(body))) {
    return StoreError(absl::StatusCode::kResourceExhausted, reason::kDiskFull, message);
  }
  if (code == 401 || code == 403) return absl::PermissionDeniedError(message);
  if (MayPass(code, CodeOf(body))) return absl::UnavailableError(message);
  return absl::FailedPreconditionError(message);
}

}  // namespace

struct S3Connection::Easy {
  Easy() : curl(curl_easy_init()) {}
  ~Easy() { curl_easy_cleanup(curl); }
  Easy(const Easy&) = delete;
  Easy& operator=(const Easy&) = delete;
  CURL* curl;
};

// One try of a request, as libcurl's callbacks see it.
struct S3Connection::Transfer {
  Transfer(CURL* the_curl, const S3Request& the_request, size_t already)
      : curl(the_curl), request(the_request), received(already) {}

  CURL* const curl;
  const S3Request& request;
  size_t sent = 0;
  size_t received;  // of `into`
  bool too_long = false;
  std::string text;
  std::string etag;
  std::string range;  // Content-Range

  static size_t OnBody(const char* data, size_t, size_t bytes, void* self) {
    return static_cast<Transfer*>(self)->Take(data, bytes);
  }
  static size_t OnHeader(const char* data, size_t, size_t bytes, void* self) {
    static_cast<Transfer*>(self)->TakeHeader(std::string(data, bytes));
    return bytes;
  }
  static size_t OnSend(char* buffer, size_t, size_t bytes, void* self) {
    auto* transfer = static_cast<Transfer*>(self);
    const std::span<const std::byte> left = transfer->request.body.subspan(transfer->sent);
    const size_t count = std::min(bytes, left.size());
    if (count > 0) std::memcpy(buffer, left.data(), count);
    transfer->sent += count;
    return count;
  }
  static int OnSeek(void* self, curl_off_t offset, int) {
    static_cast<Transfer*>(self)->sent = static_cast<size_t>(offset);
    return CURL_SEEKFUNC_OK;
  }

  long Code() const {
    long code = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }

 private:
  size_t Take(const char* data, size_t bytes) {
    const long code = Code();
    if (request.into.empty() || code < 200 || code > 299) {
      const size_t room = kMaxText - text.size();
      text.append(data, std::min(bytes, room));
      return bytes <= room ? bytes : 0;
    }
    // A server may ignore the wish for the rest and send all.
    if (code == 200 && !whole_) {
      whole_ = true;
      received = 0;
    }
    if (bytes > request.into.size() - received) {
      too_long = true;
      return 0;
    }
    std::memcpy(request.into.data() + received, data, bytes);
    received += bytes;
    return bytes;
  }

  void TakeHeader(std::string line) {
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    const size_t colon = line.find(':');
    if (colon == std::string::npos) return;
    const std::string value(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    if (absl::EqualsIgnoreCase(line.substr(0, colon), "etag")) etag = value;
    if (absl::EqualsIgnoreCase(line.substr(0, colon), "content-range")) range = value;
  }

  bool whole_ = false;
};

S3Connection::S3Connection(S3Place place, S3Patience patience)
    : place_(std::move(place)), patience_(patience) {
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(global);  // where it fails there are no handles, which `Try` sees
}

S3Connection::~S3Connection() = default;

std::unique_ptr<S3Connection::Easy> S3Connection::Take() {
  MutexLock lock(&mutex_);
  if (idle_.empty()) return std::make_unique<Easy>();
  std::unique_ptr<Easy> easy = std::move(idle_.back());
  idle_.pop_back();
  return easy;
}

void S3Connection::Give(std::unique_ptr<Easy> easy) {
  curl_easy_reset(easy->curl);  // keeps the open connection
  MutexLock lock(&mutex_);
  idle_.push_back(std::move(easy));
}

absl::StatusOr<S3Response> S3Connection::Send(const S3Request& request) {
  thread_local std::minstd_rand random{std::random_device()()};
  const absl::Time began = absl::Now();
  {
    MutexLock lock(&mutex_);
    if (began < down_until_) {
      return absl::UnavailableError(
          absl::StrCat(What(request), " isn't tried: S3 didn't answer a moment ago"));
    }
  }
  size_t received = 0;
  for (int made = 1;; ++made) {
    auto [response, again] = Try(request, &received);
    if (response.ok() || !again) return std::move(response);
    const absl::Time now = absl::Now();
    if (made >= patience_.tries || now - began >= patience_.all_tries) {
      MutexLock lock(&mutex_);
      down_until_ = now + patience_.down;
      return std::move(response);
    }
    const double jitter = std::uniform_real_distribution<>(0.5, 1.5)(random);
    absl::SleepFor(patience_.first_delay * (1 << std::min(made - 1, kMaxDoublings)) * jitter);
  }
}

std::pair<absl::StatusOr<S3Response>, bool> S3Connection::Try(const S3Request& request,
                                                              size_t* received) {
  std::unique_ptr<Easy> easy = Take();
  CURL* const curl = easy->curl;
  if (curl == nullptr) return {absl::UnavailableError("libcurl has no handle to give"), true};
  Transfer transfer(curl, request, *received);
  const std::string url = UrlOf(place_, request);
  const std::string signing = absl::StrCat("aws:amz:", place_.region, ":s3");
  const std::string digest = absl::StrCat(
      "x-amz-content-sha256: ",
      Sha256Hex({reinterpret_cast<const char*>(request.body.data()), request.body.size()}));
  char error[CURL_ERROR_SIZE] = "";

  Set(curl, CURLOPT_URL, url.c_str());
  Set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(curl, CURLOPT_PATH_AS_IS, 1L);  // what was signed
  Set(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(curl, CURLOPT_NOSIGNAL, 1L);
  Set(curl, CURLOPT_ERRORBUFFER, error);
  Set(curl, CURLOPT_USERNAME, place_.access_key.c_str());  // may have a colon in it
  Set(curl, CURLOPT_PASSWORD, place_.secret_key.c_str());
  Set(curl, CURLOPT_AWS_SIGV4, signing.c_str());
  Set(curl, CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(patience_.connect / absl::Milliseconds(1)));
  Set(curl, CURLOPT_LOW_SPEED_LIMIT, 1024L);
  Set(curl, CURLOPT_LOW_SPEED_TIME,
      std::max(1L, static_cast<long>(patience_.stall / absl::Seconds(1))));
  Set(curl, CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  Set(curl, CURLOPT_WRITEDATA, &transfer);
  Set(curl, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  Set(curl, CURLOPT_HEADERDATA, &transfer);
  if (!place_.ca_file.empty()) Set(curl, CURLOPT_CAINFO, place_.ca_file.c_str());
  if (request.method == "PUT") {
    Set(curl, CURLOPT_UPLOAD, 1L);
    Set(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    Set(curl, CURLOPT_READFUNCTION, &Transfer::OnSend);
    Set(curl, CURLOPT_READDATA, &transfer);
    Set(curl, CURLOPT_SEEKFUNCTION, &Transfer::OnSeek);
    Set(curl, CURLOPT_SEEKDATA, &transfer);
  } else if (request.method == "POST") {
    Set(curl, CURLOPT_POST, 1L);
    Set(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    // Without a pointer libcurl would read the standard input.
    Set(curl, CURLOPT_POSTFIELDS,
        request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
  } else if (request.method == "HEAD") {
    Set(curl, CURLOPT_NOBODY, 1L);
  } else {
    Set(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  const std::string range = absl::StrCat(*received, "-");
  if (*received > 0) Set(curl, CURLOPT_RANGE, range.c_str());
  curl_slist* headers = curl_slist_append(nullptr, digest.c_str());
  if (!place_.session_token.empty()) {
    headers = curl_slist_append(
        headers, absl::StrCat("x-amz-security-token: ", place_.session_token).c_str());
  }
  Set(curl, CURLOPT_HTTPHEADER, headers);

  const CURLcode result = curl_easy_perform(curl);
  S3Response response;
  response.code = transfer.Code();
  curl_off_t length = 0;
  curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  response.length = static_cast<uint64_t>(std::max<curl_off_t>(0, length));
  curl_slist_free_all(headers);
  Give(std::move(easy));

  const auto wrong_length = [&](const std::string& bytes) {
    return absl::DataLossError(absl::StrCat("the object '", request.key, "' has ", bytes,
                                            " bytes instead of ", request.into.size()));
  };
  if (transfer.too_long) return {wrong_length("more"), false};
  if (result != CURLE_OK) {
    // A rest of nothing can't be asked for.
    *received = transfer.received < request.into.size() ? transfer.received : 0;
    return {absl::UnavailableError(absl::StrCat(
                What(request), " failed: ", *error != '\0' ? error : curl_easy_strerror(result))),
            true};
  }
  const long code = response.code;
  if (code != 404 && (code < 200 || code > 299)) {
    return {Refused(request, code, transfer.text), MayPass(code, CodeOf(transfer.text))};
  }
  if (code == 206 && !absl::StartsWith(transfer.range, absl::StrCat("bytes ", range))) {
    return {absl::UnavailableError(absl::StrCat(What(request), " got another part than asked for")),
            true};
  }
  if (code != 404 && transfer.received != request.into.size()) {
    // Without a length a body that was cut looks like a whole one.
    *received = transfer.received;
    return {wrong_length(absl::StrCat(transfer.received)), length < 0};
  }
  response.text = std::move(transfer.text);
  response.etag = std::move(transfer.etag);
  return {std::move(response), false};
}

}  // namespace docmem::store
