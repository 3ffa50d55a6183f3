#include "eval/record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/model/testing.h"
#include "engine/testing.h"

namespace docmem::eval {
namespace {

using engine::Mode;
using engine::testing::ErrorOf;
using training::Supervision;

Json Prediction(const std::string& document, size_t question) {
  return {{"document", document},
          {"document_digest", "d1"},
          {"question", question},
          {"mode", "ADAPTER_PREFILL"},
          {"supervision", "RAW_CONTEXT"},
          {"ratio_ppm", 900'000},
          {"answer", "ø"}};
}

class RecordTest : public ::testing::Test {
 protected:
  std::filesystem::path Path(const char* name) const { return folder_.path() / name; }

  engine::testing::TemporaryFolder folder_;
};

TEST_F(RecordTest, APredictionIsKnownByDocumentQuestionModeSupervisionAndRatio) {
  const PredictionKey key = {.document = "a",
                             .question = 1,
                             .mode = Mode::kAdapterPrefill,
                             .supervision = Supervision::kRawContext,
                             .ratio_ppm = 900'000};
  for (int opened = 0; opened < 2; ++opened) {
    PredictionLog log(Path("p"));
    EXPECT_EQ(log.Has(key), opened == 1);
    if (opened == 0) log.Append({Prediction("a", 1)});
    EXPECT_TRUE(log.Has(key));
    EXPECT_EQ(log.size(), 1U);
    PredictionKey other = key;
    other.document = "b";
    EXPECT_FALSE(log.Has(other));
    (other = key).question = 2;
    EXPECT_FALSE(log.Has(other));
    (other = key).mode = Mode::kBaseScoreAdapterPrefill;
    EXPECT_FALSE(log.Has(other));
    (other = key).supervision.reset();
    EXPECT_FALSE(log.Has(other));
    (other = key).ratio_ppm = 0;
    EXPECT_FALSE(log.Has(other));
  }
}

TEST_F(RecordTest, ALineThatIsNoPredictionIsNamed) {
  WriteDurably(Path("p"), Prediction("a", 1).dump() + "\n{\"document\": \"a\"}\n");
  const auto error = ErrorOf([&] { PredictionLog log(Path("p")); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), engine::ErrorKind::kDataLoss);
  EXPECT_EQ(error->field(), Path("p").string() + ":2");
}

TEST_F(RecordTest, ADocumentOfOtherContentIsRefused) {
  PredictionLog log(Path("p"));
  log.Append({Prediction("a", 1)});
  EXPECT_NO_THROW(log.RequireSameContent({.id = "a", .digest = "d1"}));
  EXPECT_NO_THROW(log.RequireSameContent({.id = "b", .digest = "d2"}));
  EXPECT_TRUE(ErrorOf([&] { log.RequireSameContent({.id = "a", .digest = "d2"}); }));
}

TEST_F(RecordTest, ARunThatDiffersIsRefusedByField) {
  const auto engine = engine::testing::TinyEngine("tiny-llama");
  Settings settings;
  RequireSameRun(Path("run.json"), CommonFields(*engine, settings));
  settings.ratios_ppm = {0};
  settings.supervisions = {Supervision::kRawContext};
  settings.batch = 3;
  EXPECT_NO_THROW(RequireSameRun(Path("run.json"), CommonFields(*engine, settings)));
  const auto field = [&](const Settings& changed) {
    const auto error =
        ErrorOf([&] { RequireSameRun(Path("run.json"), CommonFields(*engine, changed)); });
    return error ? error->field().substr(error->field().rfind('.') + 1) : "";
  };
  EXPECT_EQ(field({.max_tokens = 3}), "max_tokens");
  EXPECT_EQ(field({.system_text = "Answer."}), "system_text_digest");
  EXPECT_EQ(field({.seed = 1}), "seed");
  EXPECT_EQ(field({.training = {.epochs = 3}}), "training");
  const auto other = engine::testing::TinyEngine("tiny-llama", "bfloat16");
  EXPECT_TRUE(ErrorOf([&] { RequireSameRun(Path("run.json"), CommonFields(*other, {})); }));
}

}  // namespace
}  // namespace docmem::eval
