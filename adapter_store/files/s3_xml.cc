#include "adapter_store/files/s3_xml.h"

#include <pugixml.hpp>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace docmem::store {
namespace {

constexpr size_t kShownText = 200;

absl::Status Odd(const std::string& xml) {
  return absl::UnavailableError(
      absl::StrCat("S3 answered what isn't its language: ", ReadErrorText(xml)));
}

// The root must be there: an empty text has neither keys nor an end.
absl::StatusOr<pugi::xml_node> Root(pugi::xml_document& document, const std::string& xml,
                                    const char* name) {
  if (!document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8))
    return Odd(xml);
  const pugi::xml_node root = document.child(name);
  if (!root) return Odd(xml);
  return root;
}

bool IsTruncated(const pugi::xml_node& root) {
  return absl::EqualsIgnoreCase(root.child_value("IsTruncated"), "true");
}

}  // namespace

std::string ShownText(const std::string& text) {
  std::string shown = text.substr(0, kShownText);
  for (char& c : shown) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return shown;
}

absl::StatusOr<S3Listing> ReadListing(const std::string& xml) {
  pugi::xml_document document;
  const auto root = Root(document, xml, "ListBucketResult");
  if (!root.ok()) return root.status();
  S3Listing listing{.keys = {}, .more = IsTruncated(*root)};
  for (const pugi::xml_node entry : root->children("Contents")) {
    listing.keys.emplace_back(entry.child_value("Key"));
  }
  return listing;
}

absl::StatusOr<S3Uploads> ReadUploads(const std::string& xml) {
  pugi::xml_document document;
  const auto root = Root(document, xml, "ListMultipartUploadsResult");
  if (!root.ok()) return root.status();
  S3Uploads result{.uploads = {}, .more = IsTruncated(*root)};
  for (const pugi::xml_node entry : root->children("Upload")) {
    result.uploads.emplace_back(entry.child_value("Key"), entry.child_value("UploadId"));
  }
  return result;
}

absl::StatusOr<std::string> ReadUploadId(const std::string& xml) {
  pugi::xml_document document;
  const auto root = Root(document, xml, "InitiateMultipartUploadResult");
  if (!root.ok()) return root.status();
  std::string id = root->child_value("UploadId");
  if (id.empty()) return Odd(xml);
  return id;
}

absl::Status ReadCompletion(const std::string& xml) {
  pugi::xml_document document;
  return Root(document, xml, "CompleteMultipartUploadResult").status();
}

std::string CompletionXml(const std::vector<std::string>& etags) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("CompleteMultipartUpload");
  for (size_t i = 0; i < etags.size(); ++i) {
    pugi::xml_node part = root.append_child("Part");
    part.append_child("PartNumber").text().set(absl::StrCat(i + 1).c_str());
    part.append_child("ETag").text().set(etags[i].c_str());
  }
  std::ostringstream xml;
  document.save(xml, "", pugi::format_raw);
  return xml.str();
}

std::string ReadErrorText(const std::string& xml) {
  pugi::xml_document document;
  if (document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8)) {
    const pugi::xml_node error = document.child("Error");
    if (error) {
      const std::string text =
          absl::StrCat(error.child_value("Code"), ": ", error.child_value("Message"));
      return ShownText(text);
    }
  }
  return ShownText(xml);
}

}  // namespace docmem::store
