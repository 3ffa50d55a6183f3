#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/error.h"

namespace docmem::engine {

using Json = nlohmann::json;

struct JsonLimits {
  size_t max_bytes = 256u << 20;
  int max_depth = 64;  // objects and arrays inside each other
};

// Parses a whole JSON text strictly: UTF-8, no comments, nothing behind the value, no key twice in
// an object. Throws kInvalidArgument with `source` (a file's name) as the field and the byte
// position or the key in the message; never an exception of the JSON library.
Json ParseJson(std::string_view text, const std::string& source, const JsonLimits& limits = {});

// Typed reading of one JSON object. It refers to the object, which must outlive it. Every error is
// kInvalidArgument, and its field is the full path ("config.json.rope_scaling.factor"). A key whose
// value is null counts as absent. Immutable, thread-safe.
class JsonFields {
 public:
  // Throws if `value` isn't an object. `path` is the object's own path (a file's name at the top).
  JsonFields(const Json& value, std::string path);

  bool Has(std::string_view key) const;
  std::string Path(std::string_view key) const;
  const Json& json() const noexcept { return *object_; }

  // Null if the key is absent or its value is null.
  const Json* Find(std::string_view key) const;

  // These throw if the key is absent, or its value is of another type or out of [min, max].
  // A number with a fraction isn't an integer; an integer is a number.
  const Json& Value(std::string_view key) const;
  std::string String(std::string_view key) const;
  bool Bool(std::string_view key) const;
  int64_t Int(std::string_view key, int64_t min, int64_t max) const;
  double Number(std::string_view key) const;  // finite
  JsonFields Object(std::string_view key) const;
  const Json& Array(std::string_view key) const;
  std::vector<std::string> Strings(std::string_view key) const;
  std::vector<int64_t> Ints(std::string_view key, int64_t min, int64_t max) const;

  // These return nothing if the key is absent; a wrong type or range still throws.
  std::optional<std::string> OptionalString(std::string_view key) const;
  std::optional<bool> OptionalBool(std::string_view key) const;
  std::optional<int64_t> OptionalInt(std::string_view key, int64_t min, int64_t max) const;
  std::optional<double> OptionalNumber(std::string_view key) const;
  std::optional<JsonFields> OptionalObject(std::string_view key) const;
  std::optional<std::vector<std::string>> OptionalStrings(std::string_view key) const;

 private:
  const Json* object_;
  std::string path_;
};

}  // namespace docmem::engine
