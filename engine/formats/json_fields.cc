#include "engine/formats/json_fields.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace docmem::engine {
namespace {

// Sees what the library lets pass: depth and keys that come twice. Of its own pass, since parsing
// with a callback looks at all members of an object again behind each one that is an object, too.
class StrictnessCheck final : public nlohmann::json_sax<Json> {
 public:
  StrictnessCheck(const std::string& source, int max_depth)
      : source_(source), max_depth_(max_depth) {}

  bool start_object(size_t) override {
    keys_.emplace_back();
    return Enter();
  }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) {
      ThrowInvalidArgument(source_, "has the key \"" + key + "\" twice in one object");
    }
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return Leave();
  }
  bool start_array(size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  // What is no JSON at all is told by whoever parses next.
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Enter() {
    if (depth_++ >= max_depth_) {
      ThrowInvalidArgument(source_, "is nested deeper than " + std::to_string(max_depth_));
    }
    return true;
  }
  bool Leave() {
    --depth_;
    return true;
  }

  const std::string& source_;
  const int max_depth_;
  int depth_ = 0;
  std::vector<std::unordered_set<std::string>> keys_;
};

[[noreturn]] void ThrowType(std::string path, const char* wanted, const Json& value) {
  ThrowInvalidArgument(std::move(path),
                       std::string("must be ") + wanted + ", is a JSON " + value.type_name());
}

std::string ToString(const Json& value, std::string path) {
  if (!value.is_string()) ThrowType(std::move(path), "a string", value);
  return value.get_ref<const std::string&>();
}

bool ToBool(const Json& value, std::string path) {
  if (!value.is_boolean()) ThrowType(std::move(path), "true or false", value);
  return value.get<bool>();
}

int64_t ToInt(const Json& value, std::string path, int64_t min, int64_t max) {
  if (!value.is_number_integer()) ThrowType(std::move(path), "an integer", value);
  const bool too_big = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
  if (too_big || value.get<int64_t>() < min || value.get<int64_t>() > max) {
    ThrowInvalidArgument(std::move(path), "is " + value.dump() + ", must be from " +
                                              std::to_string(min) + " to " + std::to_string(max));
  }
  return value.get<int64_t>();
}

double ToNumber(const Json& value, std::string path) {
  if (!value.is_number()) ThrowType(std::move(path), "a number", value);
  const auto number = value.get<double>();
  if (!std::isfinite(number)) ThrowInvalidArgument(std::move(path), "must be finite");
  return number;
}

template <typename Element, typename Convert>
std::vector<Element> ToVector(const Json& array, const std::string& path, Convert convert) {
  if (!array.is_array()) ThrowType(path, "an array", array);
  std::vector<Element> elements;
  elements.reserve(array.size());
  for (const Json& element : array) {
    elements.push_back(convert(element, path + "[" + std::to_string(elements.size()) + "]"));
  }
  return elements;
}

}  // namespace

Json ParseJson(std::string_view text, const std::string& source, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    ThrowInvalidArgument(source, "has " + std::to_string(text.size()) + " bytes, more than the " +
                                     std::to_string(limits.max_bytes) + " allowed");
  }
  StrictnessCheck check(source, limits.max_depth);
  try {
    Json::sax_parse(text, &check);
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    ThrowInvalidArgument(source, "isn't valid JSON at byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {
    ThrowInvalidArgument(source, "has a number that is out of range");
  }
}

JsonFields::JsonFields(const Json& value, std::string path)
    : object_(&value), path_(std::move(path)) {
  if (!value.is_object()) ThrowType(path_, "an object", value);
}

bool JsonFields::Has(std::string_view key) const { return Find(key) != nullptr; }

std::string JsonFields::Path(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

const Json* JsonFields::Find(std::string_view key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const Json& JsonFields::Value(std::string_view key) const {
  const Json* value = Find(key);
  if (value == nullptr) ThrowInvalidArgument(Path(key), "is missing");
  return *value;
}

std::string JsonFields::String(std::string_view key) const {
  return ToString(Value(key), Path(key));
}

bool JsonFields::Bool(std::string_view key) const { return ToBool(Value(key), Path(key)); }

int64_t JsonFields::Int(std::string_view key, int64_t min, int64_t max) const {
  return ToInt(Value(key), Path(key), min, max);
}

double JsonFields::Number(std::string_view key) const { return ToNumber(Value(key), Path(key)); }

JsonFields JsonFields::Object(std::string_view key) const {
  return JsonFields(Value(key), Path(key));
}

const Json& JsonFields::Array(std::string_view key) const {
  const Json& value = Value(key);
  if (!value.is_array()) ThrowType(Path(key), "an array", value);
  return value;
}

std::vector<std::string> JsonFields::Strings(std::string_view key) const {
  return ToVector<std::string>(Value(key), Path(key), ToString);
}

std::vector<int64_t> JsonFields::Ints(std::string_view key, int64_t min, int64_t max) const {
  return ToVector<int64_t>(Value(key), Path(key), [&](const Json& element, std::string path) {
    return ToInt(element, std::move(path), min, max);
  });
}

std::optional<std::string> JsonFields::OptionalString(std::string_view key) const {
  return Has(key) ? std::optional(String(key)) : std::nullopt;
}

std::optional<bool> JsonFields::OptionalBool(std::string_view key) const {
  return Has(key) ? std::optional(Bool(key)) : std::nullopt;
}

std::optional<int64_t> JsonFields::OptionalInt(std::string_view key, int64_t min,
                                               int64_t max) const {
  return Has(key) ? std::optional(Int(key, min, max)) : std::nullopt;
}

std::optional<double> JsonFields::OptionalNumber(std::string_view key) const {
  return Has(key) ? std::optional(Number(key)) : std::nullopt;
}

std::optional<JsonFields> JsonFields::OptionalObject(std::string_view key) const {
  return Has(key) ? std::optional(Object(key)) : std::nullopt;
}

std::optional<std::vector<std::string>> JsonFields::OptionalStrings(std::string_view key) const {
  return Has(key) ? std::optional(Strings(key)) : std::nullopt;
}

}  // namespace docmem::engine
