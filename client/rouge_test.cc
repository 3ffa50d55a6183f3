#include "client/rouge.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace docmem::client {
namespace {

TEST(RougeTest, EqualsTheLibraryRougeScore) {
  std::ifstream file(DOCMEM_SOURCE_DIR "/tests/reference/rouge/scores.json");
  std::stringstream text;
  text << file.rdbuf();
  google::protobuf::ListValue golden;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(text.str(), &golden).ok());
  ASSERT_GT(golden.values_size(), 80);
  for (const auto& value : golden.values()) {
    const auto& fields = value.struct_value().fields();
    const std::string& reference = fields.at("reference").string_value();
    const std::string& answer = fields.at("answer").string_value();
    EXPECT_NEAR(RougeL(reference, answer), fields.at("rouge_l").number_value(), 1e-12)
        << reference << " | " << answer;
  }
}

TEST(RougeTest, TheBestReferenceCounts) {
  EXPECT_DOUBLE_EQ(BestRougeL({"a lamp", "the blue lamp"}, "The blue lamp!"), 1.0);
  EXPECT_DOUBLE_EQ(BestRougeL({}, "a lamp"), 0.0);
}

}  // namespace
}  // namespace docmem::client
