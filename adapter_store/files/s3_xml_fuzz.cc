#include "adapter_store/files/s3_xml.h"

// What an object store answers. Whatever is read must be text of the answer, never more of it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string xml(reinterpret_cast<const char*>(data), size);
  if (const auto listing = docmem::store::ReadListing(xml); listing.ok()) {
    // No key is longer than what it was read from.
    size_t bytes = 0;
    for (const std::string& key : listing->keys) bytes += key.size();
    if (bytes > size) __builtin_trap();
  }
  docmem::store::ReadUploads(xml).status().IgnoreError();
  docmem::store::ReadUploadId(xml).status().IgnoreError();
  docmem::store::ReadCompletion(xml).IgnoreError();
  if (docmem::store::ReadErrorText(xml).size() > 200) __builtin_trap();
  return 0;
}
