#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/arguments.h"

namespace docmem::cli {

/// Enum values as people write them: MODE_BASE as "base", never the unspecified one.
std::vector<std::string> NamesOf(const google::protobuf::EnumDescriptor& type);

/// "-" for the unspecified value.
std::string NameOf(const google::protobuf::EnumDescriptor& type, int number);

template <class Enum>
std::string NameOf(Enum value) {
  return NameOf(*google::protobuf::GetEnumDescriptor<Enum>(), static_cast<int>(value));
}

/// Takes "base-kv-adapter-decode", "BASE_KV_ADAPTER_DECODE" and "MODE_BASE_KV_ADAPTER_DECODE".
absl::StatusOr<int> ParseName(const google::protobuf::EnumDescriptor& type,
                              const std::string& text);

/// One value of an enum.
template <class Enum>
Value OneOf(const std::string& placeholder, std::optional<Enum>* target) {
  const auto* type = google::protobuf::GetEnumDescriptor<Enum>();
  return {.placeholder = placeholder,
          .choices = NamesOf(*type),
          .assign = [type, target](const std::string& text) {
            const absl::StatusOr<int> number = ParseName(*type, text);
            if (number.ok()) *target = static_cast<Enum>(*number);
            return number.status();
          }};
}

template <class Enum>
Value OneOf(const std::string& placeholder, Enum* target) {
  const auto* type = google::protobuf::GetEnumDescriptor<Enum>();
  return {.placeholder = placeholder,
          .choices = NamesOf(*type),
          .assign = [type, target](const std::string& text) {
            const absl::StatusOr<int> number = ParseName(*type, text);
            if (number.ok()) *target = static_cast<Enum>(*number);
            return number.status();
          }};
}

}  // namespace docmem::cli
