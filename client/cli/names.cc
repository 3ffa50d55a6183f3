#include "client/cli/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace docmem::cli {
namespace {

using google::protobuf::EnumDescriptor;

// "MODE_" of an enum whose first value is MODE_UNSPECIFIED.
std::string Prefix(const EnumDescriptor& type) {
  return std::string(absl::StripSuffix(type.FindValueByNumber(0)->name(), "UNSPECIFIED"));
}

std::string Spell(const EnumDescriptor& type, const std::string& name) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(absl::StripPrefix(name, Prefix(type))),
                             {{"_", "-"}});
}

}  // namespace

std::vector<std::string> NamesOf(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) names.push_back(Spell(type, type.value(i)->name()));
  }
  return names;
}

std::string NameOf(const EnumDescriptor& type, int number) {
  const auto* value = type.FindValueByNumber(number);
  if (value == nullptr) return absl::StrCat(number);
  return number == 0 ? "-" : Spell(type, value->name());
}

absl::StatusOr<int> ParseName(const EnumDescriptor& type, const std::string& text) {
  const std::string name = absl::StrReplaceAll(absl::AsciiStrToUpper(text), {{"-", "_"}});
  const auto* value = type.FindValueByName(name);
  if (value == nullptr) value = type.FindValueByName(absl::StrCat(Prefix(type), name));
  if (value != nullptr && value->number() != 0) return value->number();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" isn't one of ", absl::StrJoin(NamesOf(type), ", ")));
}

}  // namespace docmem::cli
