#include "adapter_store/files/s3_object_store.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/files/s3_xml.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

constexpr long kNotFound = 404;
constexpr char kPageKeys[] = "1000";
constexpr uint64_t kMaxParts = 1000;  // of Swift; others take more

class S3Store : public ObjectStore {
 public:
  S3Store(S3Place place, S3Patience patience, size_t part_bytes)
      : s3_(std::move(place), patience), part_bytes_(part_bytes) {}

  absl::Status Put(const std::string& key, const ReadableFile& file) override {
    if (file.bytes() > part_bytes_) return PutInParts(key, file);
    std::vector<std::byte> body(file.bytes());
    STORE_RETURN_IF_ERROR(file.Read(0, body));
    return Found(s3_.Send({.method = "PUT", .key = key, .query = {}, .body = body, .into = {}}))
        .status();
  }

  absl::Status Get(const std::string& key, std::span<std::byte> buffer) override {
    STORE_ASSIGN_OR_RETURN(
        const S3Response response,
        s3_.Send({.method = "GET", .key = key, .query = {}, .body = {}, .into = buffer}));
    if (response.code == kNotFound) return Absent(key, response);
    if (buffer.empty() && !response.text.empty()) {
      return absl::DataLossError(absl::StrCat("the object '", key, "' isn't empty"));
    }
    return absl::OkStatus();
  }

  absl::Status DeleteAll(const std::string& prefix) override {
    std::string after;
    for (bool more = true; more;) {
      STORE_ASSIGN_OR_RETURN(const S3Listing page, ListPage(prefix, after));
      for (const std::string& key : page.keys) {
        if (key <= after) return Odd(key);
        STORE_RETURN_IF_ERROR(DeleteListed(prefix, key, {}));
        after = key;
      }
      if (page.more && page.keys.empty()) return Odd("an empty page before others");
      more = page.more;
    }
    std::pair<std::string, std::string> last;
    for (bool more = true; more;) {
      STORE_ASSIGN_OR_RETURN(const S3Uploads page, UploadsPage(prefix, last));
      for (const auto& upload : page.uploads) {
        if (upload == last) return Odd(upload.first);
        STORE_RETURN_IF_ERROR(DeleteListed(prefix, upload.first, {{"uploadId", upload.second}}));
        last = upload;
      }
      if (page.more && page.uploads.empty()) return Odd("an empty page before others");
      more = page.more;
    }
    return absl::OkStatus();
  }

 private:
  using Query = std::vector<std::pair<std::string, std::string>>;

  absl::StatusOr<S3Response> Send(const std::string& method, const std::string& key, Query query,
                                  std::span<const std::byte> body = {}) {
    return s3_.Send(
        {.method = method, .key = key, .query = std::move(query), .body = body, .into = {}});
  }

  // For requests to which absence is no answer: then it is the bucket or the upload that is gone.
  static absl::StatusOr<S3Response> Found(absl::StatusOr<S3Response> response) {
    if (response.ok() && response->code == kNotFound) {
      return absl::FailedPreconditionError(
          absl::StrCat("S3 doesn't find it: ", ReadErrorText(response->text)));
    }
    return response;
  }

  static absl::Status Absent(const std::string& key, const S3Response& response) {
    // Who but the store itself says so, a proxy for instance, doesn't know.
    const std::string why = ReadErrorText(response.text);
    if (why.starts_with("NoSuchKey")) {
      return absl::NotFoundError(absl::StrCat("no object '", key, "'"));
    }
    if (why.starts_with("NoSuchBucket")) {
      return absl::FailedPreconditionError(absl::StrCat("S3: ", why));
    }
    return absl::UnavailableError(absl::StrCat("S3: GET '", key, "' got 404 ", why));
  }

  absl::Status PutInParts(const std::string& key, const ReadableFile& file) {
    STORE_ASSIGN_OR_RETURN(const S3Response begun, Found(Send("POST", key, {{"uploads", ""}})));
    STORE_ASSIGN_OR_RETURN(const std::string id, ReadUploadId(begun.text));
    absl::Cleanup abort = [&] { Send("DELETE", key, {{"uploadId", id}}).IgnoreError(); };
    std::vector<std::string> etags;
    std::vector<std::byte> part(
        std::max<uint64_t>(part_bytes_, (file.bytes() + kMaxParts - 1) / kMaxParts));
    for (uint64_t offset = 0; offset < file.bytes(); offset += part.size()) {
      part.resize(std::min<uint64_t>(part.size(), file.bytes() - offset));
      STORE_RETURN_IF_ERROR(file.Read(offset, part));
      const Query query = {{"partNumber", absl::StrCat(etags.size() + 1)}, {"uploadId", id}};
      STORE_ASSIGN_OR_RETURN(const S3Response sent, Found(Send("PUT", key, query, part)));
      etags.push_back(sent.etag);
    }
    // From here on it may be complete whatever the answer says, and some stores destroy an object
    // whose upload is taken back afterwards. `DeleteAll` deletes objects first.
    std::move(abort).Cancel();
    const std::string completion = CompletionXml(etags);
    const absl::StatusOr<S3Response> completed =
        Send("POST", key, {{"uploadId", id}},
             std::as_bytes(std::span(completion.data(), completion.size())));
    STORE_RETURN_IF_ERROR(completed.status());
    // A completion whose answer was lost is tried again, and its upload isn't there then.
    if (completed->code == kNotFound) {
      return CheckStored(key, file.bytes());
    }
    return ReadCompletion(completed->text);
  }

  absl::Status CheckStored(const std::string& key, uint64_t bytes) {
    STORE_ASSIGN_OR_RETURN(const S3Response head, Send("HEAD", key, {}));
    if (head.code != kNotFound && head.length == bytes) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("S3 lost the upload of '", key, "'"));
  }

  // Pages go on behind what the last one ended with: what was just deleted may be listed again.
  absl::StatusOr<S3Listing> ListPage(const std::string& prefix, const std::string& after) {
    Query query = {
        {"list-type", "2"}, {"max-keys", kPageKeys}, {"prefix", s3_.place().prefix + prefix}};
    if (!after.empty()) query.emplace_back("start-after", after);
    STORE_ASSIGN_OR_RETURN(const S3Response response, Found(Send("GET", "", query)));
    return ReadListing(response.text);
  }

  absl::StatusOr<S3Uploads> UploadsPage(const std::string& prefix,
                                        const std::pair<std::string, std::string>& after) {
    Query query = {
        {"max-uploads", kPageKeys}, {"prefix", s3_.place().prefix + prefix}, {"uploads", ""}};
    if (!after.first.empty()) {
      query.insert(query.begin(), {"key-marker", after.first});
      query.insert(query.end() - 1, {"upload-id-marker", after.second});
    }
    STORE_ASSIGN_OR_RETURN(const S3Response response, Found(Send("GET", "", query)));
    return ReadUploads(response.text);
  }

  static absl::Status Odd(const std::string& what) {
    return absl::UnavailableError(absl::StrCat(
        "S3's listing isn't what was asked for: ", ShownText(what), "; nothing more is deleted"));
  }

  // A listing that isn't what was asked for must not cost foreign objects.
  absl::Status DeleteListed(const std::string& prefix, const std::string& listed, Query query) {
    const std::string& place = s3_.place().prefix;
    const bool plain = std::all_of(listed.begin(), listed.end(), [](unsigned char c) {
      return absl::ascii_isalnum(c) || absl::StrContains("/._-", static_cast<char>(c));
    });
    if (!plain || !listed.starts_with(place + prefix) || absl::StrContains(listed, "..")) {
      return Odd(listed);
    }
    return Send("DELETE", listed.substr(place.size()), std::move(query)).status();
  }

  S3Connection s3_;
  const size_t part_bytes_;
};

}  // namespace

std::unique_ptr<ObjectStore> S3ObjectStore(S3Place place, S3Patience patience, size_t part_bytes) {
  return std::make_unique<S3Store>(std::move(place), patience, part_bytes);
}

}  // namespace docmem::store
