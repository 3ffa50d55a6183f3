#include "adapter_store/archive_manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/errors.h"
#include "adapter_store/names.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

using Json = nlohmann::json;

constexpr char kReady[] = "ready";
constexpr char kStale[] = "stale";
constexpr size_t kXxh3Digits = 32;
constexpr size_t kSha256Digits = 64;
constexpr size_t kMaxFileName = 128;
constexpr size_t kMaxBaseFields = 16;
constexpr size_t kMaxValue = 1024;

Json ToJson(const ArchiveFile& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.digest}};
}

Json ToJson(const ArchiveAdapter& adapter) {
  Json files = Json::array();
  for (const ArchiveFile& file : adapter.files) files.push_back(ToJson(file));
  return {{"version", adapter.version},
          {"state", adapter.state == AdapterState::kStale ? kStale : kReady},
          {"hash", adapter.hash},
          {"scope", adapter.scope},
          {"prompt_format_digest", adapter.prompt_format_digest},
          {"text_digest", adapter.text_digest},
          {"training_job_id", adapter.training_job_id},
          {"files", std::move(files)}};
}

Json ToJson(const ArchiveCache& cache) {
  Json json = {{"id", cache.id},
               {"system_text_digest", cache.system_text_digest},
               {"file", ToJson(cache.file)}};
  if (!cache.system_text.empty()) json["system_text"] = cache.system_text;
  return json;
}

Json DocumentJson(const ArchiveManifest& manifest) {
  const DocumentSpec& spec = manifest.spec;
  return {{"collection", manifest.key.collection},
          {"id", manifest.key.id},
          {"title", spec.title},
          {"labels", spec.labels},
          {"pinned", spec.pinned},
          {"system_text", spec.system_text},
          {"text_sha256", spec.text_sha256},
          {"text_bytes", spec.text_bytes},
          {"document_tokens", manifest.document_tokens},
          {"default_cache_id", manifest.default_cache_id},
          {"current_adapter_version", manifest.current_adapter_version},
          {"evaluation", absl::Base64Escape(manifest.evaluation)}};
}

// Reads the members of one JSON object. The first fault is kept; values read after it are empty.
class Members {
 public:
  Members(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) Fail("isn't an object");
  }

  // `value` keeps what it had after a fault.
  template <class Value>
  void Read(const char* name, Value& value) {
    const Json* member = Find(name);
    if (member == nullptr) return;
    if constexpr (std::is_same_v<Value, std::string>) {
      if (!member->is_string()) return Fail(absl::StrCat(name, " isn't a string"));
      value = member->template get<std::string>();
    } else if constexpr (std::is_same_v<Value, bool>) {
      if (!member->is_boolean()) return Fail(absl::StrCat(name, " isn't true or false"));
      value = member->template get<bool>();
    } else {
      const uint64_t number = member->is_number_unsigned() ? member->template get<uint64_t>() : 0;
      value = static_cast<Value>(number);
      if (!member->is_number_unsigned() || value != number) {
        Fail(absl::StrCat(name, " isn't a number that fits"));
      }
    }
  }

  void Read(const char* name, std::map<std::string, std::string>& values) {
    const Json* member = Find(name);
    if (member == nullptr) return;
    if (!member->is_object()) return Fail(absl::StrCat(name, " isn't an object"));
    for (const auto& [key, value] : member->items()) {
      if (!value.is_string()) return Fail(absl::StrCat(name, " has a value that isn't a string"));
      values[key] = value.template get<std::string>();
    }
  }

  // Null where there is none.
  const Json& Child(const char* name) {
    static const Json kNothing;
    const Json* member = Find(name);
    return member == nullptr ? kNothing : *member;
  }
  const Json& Array(const char* name) {
    static const Json kEmpty = Json::array();
    const Json& member = Child(name);
    if (member.is_array()) return member;
    Fail(absl::StrCat(name, " isn't a list"));
    return kEmpty;
  }

  // Of all reads, and of members that nothing has read.
  absl::Status Finish() {
    if (status_.ok() && object_.size() != read_) Fail("has members that this version doesn't know");
    return status_;
  }

 private:
  const Json* Find(const char* name) {
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(name);
    if (found == object_.end()) {
      Fail(absl::StrCat("lacks ", name));
      return nullptr;
    }
    ++read_;
    return &*found;
  }
  void Fail(const std::string& why) {
    status_.Update(ArchiveInvalid(absl::StrCat("the manifest's ", where_, " ", why)));
  }

  const Json& object_;
  const std::string where_;
  size_t read_ = 0;
  absl::Status status_;
};

// Faults of values are told as the store tells them, but they are the archive's.
absl::Status AsInvalid(const absl::Status& status) {
  if (status.ok()) return status;
  return ArchiveInvalid(absl::StrCat("the manifest's ", status.message()));
}

absl::StatusOr<ArchiveFile> ReadFile(const Json& json, const std::string& where) {
  ArchiveFile file;
  Members members(json, where);
  members.Read("name", file.name);
  members.Read("bytes", file.bytes);
  members.Read("xxh3_128", file.digest);
  STORE_RETURN_IF_ERROR(members.Finish());
  STORE_RETURN_IF_ERROR(AsInvalid(CheckText("file name", file.name, kMaxFileName)));
  STORE_RETURN_IF_ERROR(AsInvalid(CheckSize("file bytes", file.bytes)));
  STORE_RETURN_IF_ERROR(AsInvalid(CheckHex("xxh3_128", file.digest, kXxh3Digits)));
  return file;
}

absl::StatusOr<ArchiveAdapter> ReadAdapter(const Json& json) {
  ArchiveAdapter adapter;
  std::string state;
  Members members(json, "adapter");
  members.Read("version", adapter.version);
  members.Read("state", state);
  members.Read("hash", adapter.hash);
  members.Read("scope", adapter.scope);
  members.Read("prompt_format_digest", adapter.prompt_format_digest);
  members.Read("text_digest", adapter.text_digest);
  members.Read("training_job_id", adapter.training_job_id);
  const Json& files = members.Array("files");
  STORE_RETURN_IF_ERROR(members.Finish());
  if (state != kReady && state != kStale) {
    return ArchiveInvalid("the manifest has an adapter that is neither ready nor stale");
  }
  adapter.state = state == kReady ? AdapterState::kReady : AdapterState::kStale;
  std::set<std::string> names;
  for (const Json& file : files) {
    STORE_ASSIGN_OR_RETURN(ArchiveFile read, ReadFile(file, "adapter file"));
    if (!names.insert(read.name).second) {
      return ArchiveInvalid("the manifest has a file of an adapter twice");
    }
    adapter.files.push_back(std::move(read));
  }
  if (adapter.files.empty()) return ArchiveInvalid("the manifest has an adapter without files");
  STORE_RETURN_IF_ERROR(AsInvalid(CheckHex("adapter hash", adapter.hash, kSha256Digits)));
  for (const std::string& text : {adapter.scope, adapter.prompt_format_digest, adapter.text_digest,
                                  adapter.training_job_id}) {
    STORE_RETURN_IF_ERROR(AsInvalid(CheckText("adapter", text, kMaxValue)));
  }
  return adapter;
}

absl::StatusOr<ArchiveCache> ReadCache(const Json& json) {
  ArchiveCache cache;
  Members members(json, "cache");
  members.Read("id", cache.id);
  members.Read("system_text_digest", cache.system_text_digest);
  if (json.contains("system_text")) members.Read("system_text", cache.system_text);
  const Json& file = members.Child("file");
  STORE_RETURN_IF_ERROR(members.Finish());
  STORE_ASSIGN_OR_RETURN(cache.file, ReadFile(file, "cache file"));
  STORE_RETURN_IF_ERROR(AsInvalid(CheckHex("cache id", cache.id, kSha256Digits)));
  STORE_RETURN_IF_ERROR(
      AsInvalid(CheckText("system_text_digest", cache.system_text_digest, kSha256Digits)));
  STORE_RETURN_IF_ERROR(AsInvalid(CheckText("system_text", cache.system_text, kMaxSystemText)));
  return cache;
}

absl::Status ReadDocument(const Json& json, ArchiveManifest& manifest) {
  std::string evaluation;
  Members members(json, "document");
  members.Read("collection", manifest.key.collection);
  members.Read("id", manifest.key.id);
  members.Read("title", manifest.spec.title);
  members.Read("labels", manifest.spec.labels);
  members.Read("pinned", manifest.spec.pinned);
  members.Read("system_text", manifest.spec.system_text);
  members.Read("text_sha256", manifest.spec.text_sha256);
  members.Read("text_bytes", manifest.spec.text_bytes);
  members.Read("document_tokens", manifest.document_tokens);
  members.Read("default_cache_id", manifest.default_cache_id);
  members.Read("current_adapter_version", manifest.current_adapter_version);
  members.Read("evaluation", evaluation);
  STORE_RETURN_IF_ERROR(members.Finish());
  if (!absl::Base64Unescape(evaluation, &manifest.evaluation)) {
    return ArchiveInvalid("the manifest's evaluation isn't base64");
  }
  STORE_RETURN_IF_ERROR(AsInvalid(CheckKey(manifest.key)));
  return AsInvalid(CheckSpec(manifest.spec));
}

absl::Status CheckModel(const ArchiveManifest& manifest) {
  if (manifest.model.size() > kMaxBaseFields) {
    return ArchiveInvalid("the manifest's model has too many fields");
  }
  for (const auto& [name, value] : manifest.model) {
    STORE_RETURN_IF_ERROR(AsInvalid(CheckText("model", name, kMaxValue)));
    STORE_RETURN_IF_ERROR(AsInvalid(CheckText("model", value, kMaxValue)));
  }
  return absl::OkStatus();
}

// What is named must be there, once.
absl::Status CheckReferences(const ArchiveManifest& manifest) {
  if (manifest.text.has_value() && manifest.text->bytes != manifest.spec.text_bytes) {
    return ArchiveInvalid("the manifest gives two lengths of the text");
  }
  std::set<std::string> hashes;
  uint32_t last_version = 0;
  bool current = manifest.current_adapter_version == 0;
  for (const ArchiveAdapter& adapter : manifest.adapters) {
    if (adapter.version <= std::exchange(last_version, adapter.version)) {
      return ArchiveInvalid("the manifest's adapter versions don't rise from 1");
    }
    if (!hashes.insert(adapter.hash).second) {
      return ArchiveInvalid("the manifest has an adapter twice");
    }
    current = current || (adapter.version == manifest.current_adapter_version &&
                          adapter.state == AdapterState::kReady);
  }
  if (!current) return ArchiveInvalid("the manifest lacks the adapter that is current");
  std::set<std::string> ids;
  for (const ArchiveCache& cache : manifest.caches) {
    if (!ids.insert(cache.id).second) return ArchiveInvalid("the manifest has a cache twice");
  }
  const bool found =
      ids.empty() ? manifest.default_cache_id.empty() : ids.contains(manifest.default_cache_id);
  return found ? absl::OkStatus() : ArchiveInvalid("the manifest lacks the default cache");
}

}  // namespace

absl::Status ArchiveInvalid(const std::string& why) {
  return StoreError(absl::StatusCode::kInvalidArgument, reason::kImportInvalid, why);
}

std::vector<ArchivePart> PartsOf(const ArchiveManifest& manifest) {
  std::vector<ArchivePart> parts;
  if (manifest.text.has_value()) parts.push_back({.file = &*manifest.text});
  for (const ArchiveAdapter& adapter : manifest.adapters) {
    for (const ArchiveFile& file : adapter.files) {
      parts.push_back({.file = &file, .adapter = &adapter});
    }
  }
  for (const ArchiveCache& cache : manifest.caches) {
    parts.push_back({.file = &cache.file, .cache = &cache});
  }
  return parts;
}

std::string WriteManifest(const ArchiveManifest& manifest) {
  Json adapters = Json::array();
  for (const ArchiveAdapter& adapter : manifest.adapters) adapters.push_back(ToJson(adapter));
  Json caches = Json::array();
  for (const ArchiveCache& cache : manifest.caches) caches.push_back(ToJson(cache));
  const Json json = {{"model", manifest.model},
                     {"document", DocumentJson(manifest)},
                     {"text", manifest.text.has_value() ? ToJson(*manifest.text) : Json()},
                     {"adapters", std::move(adapters)},
                     {"caches", std::move(caches)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<ArchiveManifest> ParseManifest(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return ArchiveInvalid("the manifest isn't JSON");
  ArchiveManifest manifest;
  Members members(json, "root");
  members.Read("model", manifest.model);
  const Json& document = members.Child("document");
  const Json& text_file = members.Child("text");
  const Json& adapters = members.Array("adapters");
  const Json& caches = members.Array("caches");
  STORE_RETURN_IF_ERROR(members.Finish());
  STORE_RETURN_IF_ERROR(CheckModel(manifest));
  STORE_RETURN_IF_ERROR(ReadDocument(document, manifest));
  if (!text_file.is_null()) {
    STORE_ASSIGN_OR_RETURN(manifest.text, ReadFile(text_file, "text"));
  }
  for (const Json& adapter : adapters) {
    STORE_ASSIGN_OR_RETURN(ArchiveAdapter read, ReadAdapter(adapter));
    manifest.adapters.push_back(std::move(read));
  }
  for (const Json& cache : caches) {
    STORE_ASSIGN_OR_RETURN(ArchiveCache read, ReadCache(cache));
    manifest.caches.push_back(std::move(read));
  }
  STORE_RETURN_IF_ERROR(CheckReferences(manifest));
  return manifest;
}

}  // namespace docmem::store
