#include "adapter_store/names.h"

#include <string>

#include "adapter_store/errors.h"
#include "adapter_store/page_token.h"
#include "adapter_store/testing/store_test_util.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

TEST(NamesTest, AcceptsTheAllowedCharactersUpToTheLimit) {
  for (const std::string& id : {std::string("a"), std::string("A.b_c-9"), std::string("-"),
                                std::string(128, 'x'), std::string("a..b"), std::string("_.")}) {
    EXPECT_OK(CheckId("document", id));
  }
}

TEST(NamesTest, RefusesHostileIdsWithoutRepeatingThem) {
  const std::string long_id(4096, 'x');
  for (const std::string& id :
       {std::string("../x"), std::string("/etc"), std::string("a/../../b"), std::string("a\0b", 3),
        long_id, std::string("."), std::string(".."), std::string(), std::string("a/"),
        std::string(".hidden"), std::string(129, 'x'), std::string("a b"), std::string("a\\b"),
        std::string("a\n"), std::string("%2e%2e"), std::string("\xD0\xB0"),
        std::string("\xEF\xBC\x8F"), std::string("caf\xC3\xA9"), std::string("a\xE2\x80\xAE")}) {
    const absl::Status status = CheckId("document", id);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << id;
    EXPECT_EQ(ReasonOf(status), reason::kInvalidField);
    EXPECT_EQ(DetailsOf(status).at("field"), "document");
    EXPECT_LT(status.message().size(), 200u);
  }
}

TEST(NamesTest, Utf8IsCheckedToTheLetterOfTheStandard) {
  for (const std::string& text :
       {std::string(), std::string("abc"), std::string("\xC2\x80"), std::string("\xDF\xBF"),
        std::string("\xE0\xA0\x80"), std::string("\xED\x9F\xBF"), std::string("\xEE\x80\x80"),
        std::string("\xF0\x90\x80\x80"), std::string("\xF4\x8F\xBF\xBF")}) {
    EXPECT_TRUE(IsUtf8(text));
  }
  for (const std::string& text :
       {std::string("\x80"), std::string("\xC0\xAF"), std::string("\xC1\xBF"),
        std::string("\xE0\x9F\xBF"), std::string("\xED\xA0\x80"), std::string("\xF0\x8F\xBF\xBF"),
        std::string("\xF4\x90\x80\x80"), std::string("\xF5\x80\x80\x80"), std::string("\xC2"),
        std::string("\xE2\x82"), std::string("\xF0\x9F\x98"), std::string("\xC2\x20")}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

TEST(NamesTest, TextLimitsAreExact) {
  EXPECT_OK(CheckText("title", std::string(10, 'x'), 10));
  EXPECT_FALSE(CheckText("title", std::string(11, 'x'), 10).ok());
  EXPECT_FALSE(CheckText("title", std::string("\0", 1), 10).ok());
}

TEST(NamesTest, LabelsAreLimitedInNumberKeysAndValues) {
  Labels labels;
  for (int i = 0; i < 32; ++i) labels["key" + std::to_string(i)] = "";
  EXPECT_OK(CheckLabels(labels));
  labels["one.more"] = "";
  EXPECT_FALSE(CheckLabels(labels).ok());
  EXPECT_FALSE(CheckLabels({{"not an id", ""}}).ok());
  EXPECT_OK(CheckLabels({{"k", std::string(256, 'x')}}));
  EXPECT_FALSE(CheckLabels({{"k", std::string(257, 'x')}}).ok());
}

TEST(NamesTest, StorableReasonIsAlwaysStorable) {
  EXPECT_EQ(StorableReason("plain \xC3\xBC"), "plain \xC3\xBC");
  EXPECT_EQ(StorableReason(std::string("a\0b\xFF", 4)), "a?b?");
  const std::string cut = StorableReason(std::string(1023, 'x') + "\xC3\xBC");
  EXPECT_EQ(cut.size(), 1023u) << "no half character at the end";
  EXPECT_TRUE(IsUtf8(cut));
}

TEST(PageTokenTest, GivesTheKeyBackToItsOwnListOnly) {
  const std::string token = MakePageToken("documents/a", "key/with:anything");
  EXPECT_EQ(*ReadPageToken("documents/a", token), "key/with:anything");
  EXPECT_FALSE(ReadPageToken("documents/b", token).ok());
  for (const std::string& bad : {std::string("x"), std::string("!!!"), token + "A",
                                 token.substr(0, token.size() - 2), std::string(4096, 'A')}) {
    const auto result = ReadPageToken("documents/a", bad);
    EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << bad;
  }
}

TEST(ErrorsTest, ReasonAndDetailsTravelWithContext) {
  const absl::Status inner = StoreError(absl::StatusCode::kAborted, reason::kRevisionMismatch,
                                        "message", {{"revision", "7"}});
  const absl::Status status = WithContext(inner, "context");
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "context: message");
  EXPECT_EQ(ReasonOf(status), "REVISION_MISMATCH");
  EXPECT_EQ(DetailsOf(status), (ErrorDetails{{"revision", "7"}}));
  EXPECT_OK(WithContext(absl::OkStatus(), "context"));
  EXPECT_EQ(ReasonOf(absl::InternalError("x")), "");
}

}  // namespace
}  // namespace docmem::store
