#include "eval/data_set.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/model/testing.h"

namespace docmem::eval {
namespace {

using engine::testing::ErrorOf;

constexpr char kShips[] =
    R"({"id": "a/1", "title": "Ships", "text": "The Aurora sank in 1911.", "source": "us",)"
    R"( "qas": [{"question": "When did it sink?", "answers": ["1911", "in 1911"], "kind": 3}]})";
constexpr char kChoice[] =
    R"({"id": "b", "text": "She takes aspirin.", "qas": [{"question": "What does she take?",)"
    R"( "answers": ["aspirin"], "options": {"A": "iron", "B": "aspirin"}, "correct": "B"}]})";

std::string Lines(std::initializer_list<std::string_view> lines) {
  std::string text;
  for (const std::string_view line : lines) text.append(line).append("\n");
  return text;
}

std::string FieldOf(const std::string& jsonl) {
  const auto error = ErrorOf([&] { ReadDataSet(jsonl, "d.jsonl"); });
  return error ? error->field() : "";
}

// kShips with one piece replaced.
std::string With(const std::string& old_piece, const std::string& new_piece) {
  std::string line = kShips;
  return line.replace(line.find(old_piece), old_piece.size(), new_piece);
}

TEST(DataSetTest, ReadsDocumentsInOrderAndIgnoresOtherKeysAndEmptyLines) {
  const auto documents = ReadDataSet(Lines({kShips, "", kChoice}), "d.jsonl");
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0].id, "a/1");
  EXPECT_EQ(documents[0].text, "The Aurora sank in 1911.");
  ASSERT_EQ(documents[0].questions.size(), 1U);
  EXPECT_EQ(documents[0].questions[0].text, "When did it sink?");
  EXPECT_EQ(documents[0].questions[0].answers, (std::vector<std::string>{"1911", "in 1911"}));
  EXPECT_TRUE(documents[0].questions[0].options.empty());
  EXPECT_EQ(documents[1].questions[0].options.at("A"), "iron");
  EXPECT_EQ(documents[1].questions[0].correct, "B");
}

TEST(DataSetTest, AMultipleChoiceIsAskedWithItsOptionsAndTaughtWithItsLetter) {
  const auto documents = ReadDataSet(Lines({kShips, kChoice}), "d.jsonl");
  EXPECT_EQ(AskedText(documents[0].questions[0]), "When did it sink?");
  EXPECT_EQ(TaughtAnswer(documents[0].questions[0]), "1911");
  EXPECT_EQ(
      AskedText(documents[1].questions[0]),
      "What does she take?\nA: iron\nB: aspirin\nAnswer with the letter of the right option.");
  EXPECT_EQ(TaughtAnswer(documents[1].questions[0]), "B: aspirin");
}

TEST(DataSetTest, TheDigestTellsContentApartAndNothingElse) {
  const auto digest = [](const std::string& line) { return ReadDataSet(line, "d")[0].digest; };
  EXPECT_EQ(digest(With("\"Ships\"", "\"Boats\"")), digest(kShips));
  EXPECT_NE(digest(With("sank in", "rose in")), digest(kShips));
  EXPECT_NE(digest(With("When did", "Where did")), digest(kShips));
  EXPECT_NE(digest(With("\"1911\", \"in 1911\"", "\"1911\"")), digest(kShips));
}

TEST(DataSetTest, RefusesMalformedLinesByNumberAndKey) {
  const std::string good = Lines({kShips});
  EXPECT_EQ(FieldOf(good + "{\"id\": \"b\""), "d.jsonl:2");
  EXPECT_EQ(FieldOf("\n[]\n"), "d.jsonl:2");
  EXPECT_EQ(FieldOf(good + With("\"a/1\"", "7")), "d.jsonl:2.id");
  EXPECT_EQ(FieldOf(With("\"a/1\"", "\"\"")), "d.jsonl:1.id");
  EXPECT_EQ(FieldOf(good + good), "d.jsonl:2.id");
  EXPECT_EQ(FieldOf(With("\"text\"", "\"texts\"")), "d.jsonl:1.text");
  EXPECT_EQ(FieldOf(With("\"qas\"", "\"questions\"")), "d.jsonl:1.qas");
  EXPECT_EQ(FieldOf(R"({"id": "a", "text": "b", "qas": []})"), "d.jsonl:1.qas");
  EXPECT_EQ(FieldOf(R"({"id": "a", "text": "b", "qas": [3]})"), "d.jsonl:1.qas[0]");
  EXPECT_EQ(FieldOf(With("\"question\"", "\"q\"")), "d.jsonl:1.qas[0].question");
  EXPECT_EQ(FieldOf(With("[\"1911\", \"in 1911\"]", "\"1911\"")), "d.jsonl:1.qas[0].answers");
  EXPECT_EQ(FieldOf(With("[\"1911\", \"in 1911\"]", "[]")), "d.jsonl:1.qas[0].answers");
  EXPECT_EQ(FieldOf(With("\"1911\", ", "\"\", ")), "d.jsonl:1.qas[0].answers");
  EXPECT_EQ(FieldOf(With("\"1911\", ", "1911, ")), "d.jsonl:1.qas[0].answers[0]");
  EXPECT_EQ(FieldOf(With("The Aurora", "\xff")), "d.jsonl:1");
  EXPECT_EQ(FieldOf(""), "d.jsonl");
}

TEST(DataSetTest, RefusesOptionsThatDontFitTheRightOne) {
  const auto with = [](const std::string& options) {
    return FieldOf(R"({"id": "a", "text": "b", "qas": [{"question": "c", "answers": ["d"],)" +
                   options + "}]}");
  };
  EXPECT_EQ(with(R"("options": {"A": "d"}, "correct": "B")"), "d.jsonl:1.qas[0].correct");
  EXPECT_EQ(with(R"("options": {"A": "d"})"), "d.jsonl:1.qas[0].correct");
  EXPECT_EQ(with(R"("options": {"yes": "d"}, "correct": "yes")"), "d.jsonl:1.qas[0].options");
  EXPECT_EQ(with(R"("options": {"A": ""}, "correct": "A")"), "d.jsonl:1.qas[0].options.A");
}

}  // namespace
}  // namespace docmem::eval
