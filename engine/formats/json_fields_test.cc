#include "engine/formats/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace docmem::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The error that `action` must throw.
template <typename Action>
Error ErrorOf(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::kInternal, "", "");
}

Error ParseError(const std::string& text, const JsonLimits& limits = {}) {
  return ErrorOf([&] { ParseJson(text, "config.json", limits); });
}

class JsonFieldsTest : public testing::Test {
 protected:
  const Json json_ = ParseJson(
      R"({"name": "llama", "tied": true, "layers": 30, "theta": 1e5, "none": null, "half": 0.5,
          "rope": {"type": "yarn"}, "words": ["a", "b"], "ids": [2, 0], "huge": 18446744073709551615,
          "mixed": ["a", 1], "minus": -3})",
      "config.json");
  const JsonFields fields_{json_, "config.json"};
};

TEST_F(JsonFieldsTest, ReadsEveryType) {
  EXPECT_EQ(fields_.String("name"), "llama");
  EXPECT_TRUE(fields_.Bool("tied"));
  EXPECT_EQ(fields_.Int("layers", 1, 100), 30);
  EXPECT_EQ(fields_.Int("minus", -3, 0), -3);
  EXPECT_EQ(fields_.Number("theta"), 100000.0);
  EXPECT_EQ(fields_.Number("layers"), 30.0);
  EXPECT_EQ(fields_.Object("rope").String("type"), "yarn");
  EXPECT_THAT(fields_.Strings("words"), ElementsAre("a", "b"));
  EXPECT_THAT(fields_.Ints("ids", 0, 2), ElementsAre(2, 0));
  EXPECT_EQ(fields_.Array("mixed").size(), 2u);
}

TEST_F(JsonFieldsTest, NullCountsAsAbsent) {
  EXPECT_FALSE(fields_.Has("none"));
  EXPECT_EQ(fields_.Find("none"), nullptr);
  EXPECT_EQ(fields_.OptionalString("none"), std::nullopt);
  EXPECT_EQ(fields_.OptionalInt("absent", 0, 1), std::nullopt);
  EXPECT_EQ(fields_.OptionalNumber("absent"), std::nullopt);
  EXPECT_EQ(fields_.OptionalBool("absent"), std::nullopt);
  EXPECT_EQ(fields_.OptionalStrings("absent"), std::nullopt);
  EXPECT_FALSE(fields_.OptionalObject("absent").has_value());
}

TEST_F(JsonFieldsTest, ErrorsNameTheFullPath) {
  const Error missing = ErrorOf([&] { fields_.Object("rope").Number("factor"); });
  EXPECT_EQ(missing.kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(missing.field(), "config.json.rope.factor");
  EXPECT_STREQ(missing.what(), "config.json.rope.factor: is missing");
  EXPECT_EQ(ErrorOf([&] { fields_.Strings("mixed"); }).field(), "config.json.mixed[1]");
}

TEST_F(JsonFieldsTest, WrongTypesAreRefusedAlsoWhereTheFieldIsOptional) {
  EXPECT_THAT(ErrorOf([&] { fields_.String("layers"); }).what(), HasSubstr("must be a string"));
  EXPECT_THAT(ErrorOf([&] { fields_.OptionalBool("name"); }).what(), HasSubstr("true or false"));
  EXPECT_THAT(ErrorOf([&] { fields_.OptionalInt("half", 0, 1); }).what(), HasSubstr("integer"));
  EXPECT_THAT(ErrorOf([&] { fields_.Number("name"); }).what(), HasSubstr("a number"));
  EXPECT_THAT(ErrorOf([&] { fields_.Object("words"); }).what(), HasSubstr("an object"));
  EXPECT_THAT(ErrorOf([&] { fields_.Array("name"); }).what(), HasSubstr("an array"));
}

TEST_F(JsonFieldsTest, IntegersOutOfRangeAreRefusedWithTheValueAndTheRange) {
  EXPECT_STREQ(ErrorOf([&] { fields_.Int("layers", 1, 8); }).what(),
               "config.json.layers: is 30, must be from 1 to 8");
  EXPECT_THAT(ErrorOf([&] { fields_.Int("huge", 0, INT64_MAX); }).what(),
              HasSubstr("18446744073709551615"));
}

TEST(ParseJsonTest, RefusesAKeyThatComesTwice) {
  EXPECT_THAT(ParseError(R"({"a": {"b": 1, "b": 2}})").what(), HasSubstr("\"b\" twice"));
  EXPECT_NO_THROW(ParseJson(R"({"a": {"b": 1}, "c": [{"b": 1}, {"b": 2}], "b": 0})", ""));
}

TEST(ParseJsonTest, RefusesWhatIsNotStrictJson) {
  for (const char* text : {"", "{", "{} x", "{'a': 1}", "[1,]", "// c\n{}", "NaN",
                           "{\"a\": \"\xff\"}", "\"\\ud800\"", "nul"}) {
    const Error error = ParseError(text);
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << text;
    EXPECT_EQ(error.field(), "config.json") << text;
    EXPECT_THAT(error.what(), HasSubstr("isn't valid JSON at byte")) << text;
  }
  EXPECT_THAT(ParseError("1e999").what(), HasSubstr("out of range"));
}

TEST(ParseJsonTest, LimitsDepthAndLength) {
  EXPECT_NO_THROW(ParseJson("[[[]]]", "", {.max_depth = 3}));
  EXPECT_THAT(ParseError("[[[[]]]]", {.max_depth = 3}).what(), HasSubstr("deeper than 3"));
  EXPECT_THAT(ParseError(std::string(1'000'000, '[')).what(), HasSubstr("deeper than 64"));
  EXPECT_THAT(ParseError("[1, 2]", {.max_bytes = 5}).what(), HasSubstr("more than the 5"));
}

// As the header of a file with so many tensors: quadratic time would be minutes.
TEST(ParseJsonTest, AnObjectOfManyObjectsTakesLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) {
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"shape":[1,2]})";
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(ParseJson(text + "}", "", {.max_bytes = text.size() + 1}).size(), 200'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
}

TEST(ParseJsonTest, MessagesDoNotRepeatTheInput) {
  EXPECT_THAT(ParseError("{\"secret words").what(), testing::Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace docmem::engine
