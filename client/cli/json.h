#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <utility>
#include <vector>

namespace docmem::cli {

/// proto3 JSON on one line: camelCase, defaults printed, 64-bit integers as strings.
std::string ToJson(const google::protobuf::Message& message);

std::string JsonString(const std::string& text);

/// Members are names with values that are JSON already.
std::string JsonObject(const std::vector<std::pair<std::string, std::string>>& members);

std::string JsonArray(const std::vector<std::string>& values);

template <class Messages>
std::string JsonArrayOf(const Messages& messages) {
  std::vector<std::string> values;
  values.reserve(static_cast<size_t>(messages.size()));
  for (const auto& message : messages) values.push_back(ToJson(message));
  return JsonArray(values);
}

}  // namespace docmem::cli
