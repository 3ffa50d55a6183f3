#include "client/cli/json.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/wrappers.pb.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace docmem::cli {

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string json;
  // Only messages with an Any of an unknown type can't be written; the contract has none.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json;
}

std::string JsonString(const std::string& text) {
  google::protobuf::StringValue value;
  value.set_value(text);
  return ToJson(value);
}

std::string JsonObject(const std::vector<std::pair<std::string, std::string>>& members) {
  return absl::StrCat("{",
                      absl::StrJoin(members, ",",
                                    [](std::string* out, const auto& member) {
                                      absl::StrAppend(out, JsonString(member.first), ":",
                                                      member.second);
                                    }),
                      "}");
}

std::string JsonArray(const std::vector<std::string>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ","), "]");
}

}  // namespace docmem::cli
