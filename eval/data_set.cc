#include "eval/data_set.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/formats/digest.h"
#include "engine/formats/error.h"
#include "engine/formats/json_fields.h"

namespace docmem::eval {
namespace {

using engine::Json;
using engine::JsonFields;
using engine::ThrowInvalidArgument;

std::string RequireText(const JsonFields& fields, std::string_view key) {
  std::string text = fields.String(key);
  if (text.empty()) ThrowInvalidArgument(fields.Path(key), "is empty");
  return text;
}

const Json& RequireSome(const JsonFields& fields, std::string_view key) {
  const Json& array = fields.Array(key);
  if (array.empty()) ThrowInvalidArgument(fields.Path(key), "is empty");
  return array;
}

void ReadOptions(const JsonFields& fields, Question* question) {
  const auto options = fields.OptionalObject("options");
  if (!options) return;
  for (const auto& [letter, text] : options->json().items()) {
    if (letter.size() != 1 || letter < "A" || letter > "Z") {
      ThrowInvalidArgument(fields.Path("options"), "has a key that isn't a letter from A to Z");
    }
    question->options[letter] = RequireText(*options, letter);
  }
  question->correct = fields.String("correct");
  if (!question->options.contains(question->correct)) {
    ThrowInvalidArgument(fields.Path("correct"), "names none of the options");
  }
}

Question ReadQuestion(const JsonFields& fields) {
  Question question{.text = RequireText(fields, "question")};
  RequireSome(fields, "answers");
  question.answers = fields.Strings("answers");
  for (const std::string& answer : question.answers) {
    if (answer.empty()) ThrowInvalidArgument(fields.Path("answers"), "holds an empty answer");
  }
  ReadOptions(fields, &question);
  return question;
}

std::string DigestOf(const Document& document) {
  Json content = {document.text};
  for (const Question& question : document.questions) {
    content.push_back({question.text, question.answers, question.options, question.correct});
  }
  return engine::Sha256Hex(content.dump());
}

Document ReadDocument(std::string_view line, const std::string& source) {
  const Json json = engine::ParseJson(line, source);
  const JsonFields fields(json, source);
  Document document{.id = RequireText(fields, "id"), .text = RequireText(fields, "text")};
  const Json& questions = RequireSome(fields, "qas");
  for (size_t i = 0; i < questions.size(); ++i) {
    const std::string path = fields.Path("qas") + "[" + std::to_string(i) + "]";
    document.questions.push_back(ReadQuestion(JsonFields(questions[i], path)));
  }
  document.digest = DigestOf(document);
  return document;
}

}  // namespace

std::vector<Document> ReadDataSet(std::string_view jsonl, const std::string& source) {
  std::vector<Document> documents;
  std::set<std::string> ids;
  for (size_t number = 1; !jsonl.empty(); ++number) {
    const std::string_view line = jsonl.substr(0, jsonl.find('\n'));
    jsonl.remove_prefix(std::min(line.size() + 1, jsonl.size()));
    if (line.empty()) continue;
    const std::string place = source + ":" + std::to_string(number);
    documents.push_back(ReadDocument(line, place));
    if (!ids.insert(documents.back().id).second) {
      ThrowInvalidArgument(place + ".id", "an earlier line has the same");
    }
  }
  if (documents.empty()) ThrowInvalidArgument(source, "holds no document");
  return documents;
}

std::string AskedText(const Question& question) {
  if (question.options.empty()) return question.text;
  std::string text = question.text;
  for (const auto& [letter, option] : question.options) {
    text += "\n" + letter + ": " + option;
  }
  return text + "\nAnswer with the letter of the right option.";
}

std::string TaughtAnswer(const Question& question) {
  if (question.options.empty()) return question.answers.front();
  return question.correct + ": " + question.options.at(question.correct);
}

}  // namespace docmem::eval
