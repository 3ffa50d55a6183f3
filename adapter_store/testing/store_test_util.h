#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/files/digest.h"
#include "gtest/gtest.h"

/// Shared by the store's tests.

#define ASSERT_OK(expression)                                       \
  do {                                                              \
    const auto& ok_result = (expression);                           \
    ASSERT_TRUE(ok_result.ok()) << store_test::StatusOf(ok_result); \
  } while (false)
#define EXPECT_OK(expression)                                       \
  do {                                                              \
    const auto& ok_result = (expression);                           \
    EXPECT_TRUE(ok_result.ok()) << store_test::StatusOf(ok_result); \
  } while (false)

namespace docmem::store::store_test {

inline absl::Status StatusOf(const absl::Status& status) { return status; }
template <class T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

/// A new folder, deleted at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    // In memory where that is possible: thousands of syncs cost nothing there.
    const bool memory = access("/dev/shm", W_OK) == 0;
    const std::filesystem::path parent =
        memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "docmem_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// What `du --apparent-size` counts: lengths of the regular files below `folder`. Files that go
/// meanwhile don't count.
inline uint64_t BytesBelow(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::error_code gone;
    const bool is_file = entry.is_regular_file(gone);
    const uintmax_t length = is_file ? entry.file_size(gone) : 0;
    if (!gone) bytes += length;
  }
  return bytes;
}

inline uint64_t ArtifactBytes(const std::string& folder) {
  return BytesBelow(folder + "/artifacts") + BytesBelow(folder + "/temporary");
}

/// A digest-like name.
inline std::string Hash(int64_t number) { return absl::StrFormat("%064x", number); }

inline DocumentKey Key(const std::string& id) { return {"default", id}; }

inline DocumentSpec SpecOf(const std::string& text) {
  DocumentSpec spec;
  spec.text_sha256 = Sha256Hex(text);
  spec.text_bytes = text.size();
  return spec;
}

inline NewCache CacheOf(int64_t id, const std::string& bytes) {
  NewCache cache;
  cache.spec.id = Hash(id);
  cache.spec.identity = {{"kv_dtype", "float32"}};
  cache.spec.ratio_ppm = 900000;
  cache.spec.profile = "compactor";
  cache.spec.kv_dtype = "float32";
  cache.spec.head_tokens = 10;
  cache.spec.context_tokens = 100;
  cache.spec.kept_tokens = 19;
  cache.spec.device_bytes = 4096;
  cache.spec.full_bytes = 40960;
  cache.file = {"cache", bytes.size(), [bytes](ArtifactWriter& writer) {
                  return writer.Append(std::as_bytes(std::span<const char>(bytes)));
                }};
  return cache;
}

inline NewFile FileOf(const std::string& name, const std::string& bytes) {
  return {name, bytes.size(), [bytes](ArtifactWriter& writer) {
            return writer.Append(std::as_bytes(std::span<const char>(bytes)));
          }};
}

inline AdapterPublication AdapterOf(const DocumentKey& key, int64_t hash,
                                    const std::string& weights) {
  AdapterPublication publication;
  publication.document = key;
  publication.spec.hash = Hash(hash);
  publication.spec.scope = "FROM_BRIDGE";
  publication.spec.base_model = "tiny";
  publication.spec.max_rank = 8;
  publication.spec.device_bytes = 1024;
  publication.files.push_back(FileOf("adapter_config.json", "{}"));
  publication.files.push_back(FileOf("adapter_model.safetensors", weights));
  publication.packed = FileOf("packed", weights + weights);
  return publication;
}

/// Announces and publishes a document with one cache (`cache_id`).
inline absl::StatusOr<Document> Ingest(AdapterStore& store, const DocumentKey& key,
                                       const std::string& text, int64_t cache_id,
                                       uint64_t replaces = 0) {
  const DocumentSpec spec = SpecOf(text);
  absl::StatusOr<Document> begun = store.BeginDocument(key, spec, replaces);
  if (!begun.ok()) return begun.status();
  DocumentPublication publication;
  publication.key = key;
  publication.row = begun->row;
  publication.replaces = replaces;
  publication.spec = spec;
  publication.document_tokens = 90;
  publication.text = text;
  publication.caches.push_back(CacheOf(cache_id, absl::StrCat("cache of ", text)));
  return store.PublishDocument(publication);
}

inline absl::StatusOr<std::string> ReadAll(AdapterStore& store, const StoredFile& file) {
  std::string bytes(file.bytes, '\0');
  absl::Status status = store.ReadFile(file, std::as_writable_bytes(std::span<char>(bytes)));
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace docmem::store::store_test
