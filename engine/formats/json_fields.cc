#include "engine/formats/json_fields.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace docmem::engine {
namespace {

// Makes the value while it is parsed, and refuses what the library lets pass: depth, and keys that
// come twice. (The library's own parsing with a callback looks at all members of an object again
// behind each one that is an object, too.)
class StrictBuilder final : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(const std::string& source, int max_depth)
      : source_(source), max_depth_(static_cast<size_t>(max_depth)) {}

  Json TakeRoot() { return std::move(root_); }

  bool start_object(size_t) override { return Enter(Json::object()); }
  bool key(string_t& key) override {
    const auto [place, added] = open_.back()->get_ref<Json::object_t&>().try_emplace(key);
    if (!added) ThrowInvalidArgument(source_, "has the key \"" + key + "\" twice in one object");
    member_ = &place->second;
    return true;
  }
  bool end_object() override { return Leave(); }
  bool start_array(size_t) override { return Enter(Json::array()); }
  bool end_array() override { return Leave(); }

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& value) override { return Put(value); }
  bool binary(binary_t&) override { return false; }  // JSON has none

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    const auto* const at = dynamic_cast<const Json::parse_error*>(&error);
    if (at == nullptr) ThrowInvalidArgument(source_, "has a number that is out of range");
    ThrowInvalidArgument(source_, "isn't valid JSON at byte " + std::to_string(at->byte));
  }

 private:
  // Where the next value goes.
  Json& Place() {
    if (open_.empty()) return root_;
    return open_.back()->is_array() ? open_.back()->emplace_back() : *member_;
  }
  bool Put(Json value) {
    Place() = std::move(value);
    return true;
  }
  bool Enter(Json empty) {
    if (open_.size() >= max_depth_) {
      ThrowInvalidArgument(source_, "is nested deeper than " + std::to_string(max_depth_));
    }
    Json& place = Place();
    place = std::move(empty);
    open_.push_back(&place);
    return true;
  }
  bool Leave() {
    open_.pop_back();
    return true;
  }

  const std::string& source_;
  const size_t max_depth_;
  Json root_;
  std::vector<Json*> open_;  // the objects and arrays around the next value
  Json* member_ = nullptr;   // of the innermost one, if it is an object
};

// A value's path in messages, made only when there is one.
struct PathOf {
  const JsonFields& fields;
  std::string_view key;
  std::optional<size_t> index;

  std::string operator()() const {
    return fields.Path(key) + (index ? "[" + std::to_string(*index) + "]" : "");
  }
};

[[noreturn]] void ThrowType(std::string path, const char* wanted, const Json& value) {
  ThrowInvalidArgument(std::move(path),
                       std::string("must be ") + wanted + ", is a JSON " + value.type_name());
}

std::string ToString(const Json& value, const PathOf& path) {
  if (!value.is_string()) ThrowType(path(), "a string", value);
  return value.get_ref<const std::string&>();
}

bool ToBool(const Json& value, const PathOf& path) {
  if (!value.is_boolean()) ThrowType(path(), "true or false", value);
  return value.get<bool>();
}

int64_t ToInt(const Json& value, const PathOf& path, int64_t min, int64_t max) {
  if (!value.is_number_integer()) ThrowType(path(), "an integer", value);
  const bool too_big = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
  if (too_big || value.get<int64_t>() < min || value.get<int64_t>() > max) {
    ThrowInvalidArgument(path(), "is " + value.dump() + ", must be from " + std::to_string(min) +
                                     " to " + std::to_string(max));
  }
  return value.get<int64_t>();
}

double ToNumber(const Json& value, const PathOf& path) {
  if (!value.is_number()) ThrowType(path(), "a number", value);
  const auto number = value.get<double>();
  if (!std::isfinite(number)) ThrowInvalidArgument(path(), "must be finite");
  return number;
}

template <typename Element, typename Convert>
std::vector<Element> ToVector(const Json& array, PathOf path, Convert convert) {
  if (!array.is_array()) ThrowType(path(), "an array", array);
  std::vector<Element> elements;
  elements.reserve(array.size());
  for (const Json& element : array) {
    path.index = elements.size();
    elements.push_back(convert(element, path));
  }
  return elements;
}

}  // namespace

Json ParseJson(std::string_view text, const std::string& source, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    ThrowInvalidArgument(source, "has " + std::to_string(text.size()) + " bytes, more than the " +
                                     std::to_string(limits.max_bytes) + " allowed");
  }
  StrictBuilder builder(source, limits.max_depth);
  Json::sax_parse(text, &builder);
  return builder.TakeRoot();
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
  return ToString(Value(key), {*this, key, {}});
}

bool JsonFields::Bool(std::string_view key) const { return ToBool(Value(key), {*this, key, {}}); }

int64_t JsonFields::Int(std::string_view key, int64_t min, int64_t max) const {
  return ToInt(Value(key), {*this, key, {}}, min, max);
}

double JsonFields::Number(std::string_view key) const {
  return ToNumber(Value(key), {*this, key, {}});
}

JsonFields JsonFields::Object(std::string_view key) const {
  return JsonFields(Value(key), Path(key));
}

const Json& JsonFields::Array(std::string_view key) const {
  const Json& value = Value(key);
  if (!value.is_array()) ThrowType(Path(key), "an array", value);
  return value;
}

std::vector<std::string> JsonFields::Strings(std::string_view key) const {
  return ToVector<std::string>(Value(key), {*this, key, {}}, ToString);
}

std::vector<int64_t> JsonFields::Ints(std::string_view key, int64_t min, int64_t max) const {
  return ToVector<int64_t>(
      Value(key), {*this, key, {}},
      [&](const Json& element, const PathOf& path) { return ToInt(element, path, min, max); });
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
