#include "client/cli/qa_file.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/local_file.h"
#include "client/internal/digest.h"

namespace docmem::cli {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

using google::protobuf::Value;

// Nothing unless it is a text that isn't empty.
std::optional<std::string> TextOf(const Value& value) {
  if (value.kind_case() != Value::kStringValue || value.string_value().empty()) {
    return std::nullopt;
  }
  return value.string_value();
}

std::optional<QaFile::Item> ParseItem(const std::string& line) {
  google::protobuf::Struct object;
  if (!google::protobuf::util::JsonStringToMessage(line, &object).ok()) return std::nullopt;
  const auto& fields = object.fields();
  const auto question = fields.find("question");
  if (question == fields.end() || !TextOf(question->second)) return std::nullopt;
  QaFile::Item item{.question = *TextOf(question->second)};
  if (const auto answer = fields.find("answer"); answer != fields.end()) {
    if (auto text = TextOf(answer->second)) item.answers.push_back(*std::move(text));
  }
  if (const auto answers = fields.find("answers"); answers != fields.end()) {
    for (const Value& answer : answers->second.list_value().values()) {
      if (auto text = TextOf(answer)) item.answers.push_back(*std::move(text));
    }
  }
  if (item.answers.empty()) return std::nullopt;
  return item;
}

}  // namespace

absl::StatusOr<QaFile> ReadQaFile(const std::string& path, const Environment& environment) {
  const absl::StatusOr<std::string> text = ReadInput(path, kMaxBytes, environment);
  if (!text.ok()) return text.status();
  QaFile file;
  client::internal::Sha256 digest;
  digest.Update(*text);
  file.sha256 = digest.Hex();
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    std::optional<QaFile::Item> item = ParseItem(std::string(line));
    if (!item) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ", line ", number, ": must be a JSON object with a \"question\" and ",
                       "an \"answer\" or a list of \"answers\""));
    }
    file.items.push_back(*std::move(item));
  }
  if (file.items.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has no questions"));
  }
  return file;
}

}  // namespace docmem::cli
