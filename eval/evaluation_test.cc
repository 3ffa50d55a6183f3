#include "eval/evaluation.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "engine/model/testing.h"
#include "engine/testing.h"
#include "eval/files.h"

namespace docmem::eval {
namespace {

using engine::Mode;
using engine::testing::ErrorOf;
using training::Supervision;

constexpr char kDocuments[] =
    R"({"id": "ships/1", "text": "Maria Lopez founded the harbour museum in 1911. It owns forty)"
    R"( ships, most of them of wood. The largest is the Aurora, built by Henrik Dahl.", "qas": [)"
    R"({"question": "Who founded it?", "answers": ["Maria Lopez"]},)"
    R"({"question": "How many ships has it?", "answers": ["forty"]},)"
    R"({"question": "Who built the Aurora?", "answers": ["Henrik Dahl", "Dahl"]}]})"
    "\n"
    R"({"id": "bees", "text": "Bees dance to tell where flowers are.", "qas": [)"
    R"({"question": "Why do bees dance?", "answers": ["to tell where flowers are"]},)"
    R"({"question": "What do they do?", "answers": ["dance"], "options": {"A": "sing",)"
    R"( "B": "dance"}, "correct": "B"}]})";

constexpr size_t kQuestions = 5;

EvaluationRequest Request(const std::filesystem::path& output) {
  EvaluationRequest request{.engine = engine::testing::TinyEngine("tiny-llama"),
                            .documents = ReadDataSet(kDocuments, "d.jsonl"),
                            .output = output};
  request.settings = {.supervisions = {Supervision::kRawContext},
                      .ratios_ppm = {0, 500'000, 1'000'000},
                      .max_tokens = 3,
                      .seen_part = 0.5,
                      .batch = 4};
  request.settings.training = {.rank = 2, .epochs = 3, .learning_rate = 0.05};
  return request;
}

void Nothing(const Progress&) {}

std::vector<Json> Lines(const std::filesystem::path& file) {
  std::ifstream lines(file);
  std::vector<Json> result;
  for (std::string line; std::getline(lines, line);) result.push_back(Json::parse(line));
  return result;
}

class EvaluationTest : public ::testing::Test {
 protected:
  std::filesystem::path Output(const std::string& name = "out") const {
    return folder_.path() / name;
  }
  std::filesystem::path Predictions(const std::string& name = "out") const {
    return Output(name) / "predictions.jsonl";
  }

  engine::testing::TemporaryFolder folder_;
};

TEST_F(EvaluationTest, AsksEveryQuestionInEveryModeUnderEverySupervisionAtEveryRatio) {
  EvaluationRequest request = Request(Output());
  request.settings.supervisions = Settings().supervisions;
  double done = 0.0;
  const Summary summary = Evaluate(request, [&](const Progress& progress) {
    EXPECT_GE(progress.done, done);
    EXPECT_LE(progress.done, 1.0);
    done = progress.done;
  });
  EXPECT_GT(done, 0.9);
  const size_t cells = 3 + 4 * 3 * 3;
  EXPECT_EQ(summary.predictions, kQuestions * cells);
  EXPECT_TRUE(summary.skipped.empty());

  std::map<std::string, std::set<std::string>> adapters;  // by document and supervision
  std::map<std::string, int> seen;
  for (const Json& line : Lines(Predictions())) {
    const bool base = line["mode"] == "BASE";
    EXPECT_EQ(line["supervision"].is_null(), base);
    EXPECT_EQ(line["training"].is_null(), base);
    EXPECT_EQ(line["adapter"].is_null(), base);
    EXPECT_EQ(line["adapter_bytes"] == 0, base);
    if (base) {
      seen[line["document"]] += line["seen"] == true ? 1 : 0;
    } else {
      EXPECT_EQ(line["training"]["supervision"], line["supervision"]);
      adapters[line["document"].get<std::string>() + line["supervision"].get<std::string>()].insert(
          line["adapter"]);
    }
  }
  EXPECT_EQ(adapters.size(), 8U);
  for (const auto& [place, hashes] : adapters) EXPECT_EQ(hashes.size(), 1U) << place;
  EXPECT_EQ(seen, (std::map<std::string, int>{{"ships/1", 2 * 3}, {"bees", 1 * 3}}));
}

TEST_F(EvaluationTest, AnswersAreThoseOfAPlainSession) {
  EvaluationRequest request = Request(Output());
  request.settings.modes = {Mode::kBase};
  Evaluate(request, Nothing);
  const engine::Engine& engine = *request.engine;
  const engine::Context context =
      engine.EncodeContext("", request.documents[0].text, request.settings.max_tokens);
  std::map<uint32_t, std::shared_ptr<const engine::Cache>> caches;
  int compared = 0;
  for (const Json& line : Lines(Predictions())) {
    if (line["mode"] != "BASE" || line["document"] != "ships/1") continue;
    const uint32_t ratio = line["ratio_ppm"];
    if (!caches.contains(ratio)) {
      caches[ratio] = engine::testing::Ingest(engine, context, {.ratio_ppm = ratio});
    }
    const auto answer = engine::testing::RunAlone(
        request.engine,
        {.cache = caches[ratio],
         .prompt_ids = engine.prompt_format().QuestionIds(
             {}, "", request.documents[0].questions[line["question"].get<size_t>()].text),
         .max_tokens = 3});
    EXPECT_EQ(line["answer"], answer.text);
    EXPECT_EQ(line["answer_tokens"], answer.ids.size());
    EXPECT_EQ(line["cache"], caches[ratio]->identity().Digest());
    EXPECT_EQ(line["cache_bytes"], caches[ratio]->bytes());
    ++compared;
  }
  EXPECT_EQ(compared, 9);
}

TEST_F(EvaluationTest, TheBaseModelWithoutTheDocumentIsAlwaysAsked) {
  EvaluationRequest request = Request(Output());
  request.settings.modes = {Mode::kBaseKvAdapterDecode};
  request.settings.ratios_ppm = {500'000};
  Evaluate(request, Nothing);
  size_t baseline = 0;
  for (const Json& line : Lines(Predictions())) {
    if (line["mode"] != "BASE") continue;
    EXPECT_EQ(line["ratio_ppm"], 1'000'000);
    ++baseline;
  }
  EXPECT_EQ(baseline, kQuestions);
}

// Both ways in which a process can end: asked to, and at once.
TEST_F(EvaluationTest, StoppedAfterAnyUnitAndContinuedItWritesTheSameBytes) {
  const auto settings = [](EvaluationRequest request) {
    request.settings.supervisions = {Supervision::kSyntheticQa, Supervision::kRawContext};
    request.settings.modes = {Mode::kBaseKvAdapterDecode, Mode::kAdapterPrefill};
    request.settings.checkpoint_seconds = 0.0;
    request.documents.resize(1);
    return request;
  };
  int units = 0;
  Evaluate(settings(Request(Output())), [&](const Progress&) { ++units; });
  const std::string whole = ReadWhole(Predictions());
  constexpr int kStops = 8;
  ASSERT_GT(units, 4 * kStops);
  int number = 0;
  for (int stop = 1; stop < units; stop += units / kStops) {
    const std::string name = std::to_string(stop);
    int unit = 0;
    const auto interrupt = [&](const Progress&) {
      if (++unit < stop) return;
      if (number % 2 == 0) engine::ThrowCancelled("stop");
      throw std::runtime_error("killed");
    };
    EXPECT_ANY_THROW(Evaluate(settings(Request(Output(name))), interrupt));
    EXPECT_NE(ReadWhole(Predictions(name)), whole);
    if (number % 3 == 0) std::ofstream(Predictions(name), std::ios::app) << "{\"document\": \"sh";
    Evaluate(settings(Request(Output(name))), Nothing);
    EXPECT_EQ(ReadWhole(Predictions(name)), whole) << "stopped after unit " << stop;
    ++number;
  }
}

TEST_F(EvaluationTest, AFinishedEvaluationDoesNoWorkAgain) {
  Evaluate(Request(Output()), Nothing);
  int units = 0;
  Evaluate(Request(Output()), [&](const Progress&) { ++units; });
  EXPECT_EQ(units, 0);
}

TEST_F(EvaluationTest, ListsMayGrowAndAdaptersAreUsedAgain) {
  EvaluationRequest request = Request(Output());
  request.settings.ratios_ppm = {0};
  Evaluate(request, Nothing);
  const std::string before = ReadWhole(Predictions());
  request.settings.ratios_ppm = {0, 500'000};
  Evaluate(request, [](const Progress& progress) { EXPECT_NE(progress.activity, "training"); });
  const std::string after = ReadWhole(Predictions());
  EXPECT_EQ(after.substr(0, before.size()), before);
  EXPECT_EQ(Lines(Predictions()).size(), kQuestions * (3 + 3 * 2));
}

TEST_F(EvaluationTest, OtherSettingsOrContentAreRefusedInTheSameFolder) {
  EvaluationRequest request = Request(Output());
  request.settings.modes = {Mode::kBase};
  Evaluate(request, Nothing);
  request.settings.max_tokens = 4;
  auto error = ErrorOf([&] { Evaluate(request, Nothing); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), engine::ErrorKind::kFailedPrecondition);
  request.settings.max_tokens = 3;
  request.documents[1].digest = "other";
  error = ErrorOf([&] { Evaluate(request, Nothing); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->field(), "document bees");
}

TEST_F(EvaluationTest, ADamagedAdapterIsNotUsed) {
  EvaluationRequest request = Request(Output());
  request.settings.ratios_ppm = {0};
  Evaluate(request, Nothing);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Output())) {
    if (entry.path().filename() != "adapter_model.safetensors") continue;
    std::string bytes = ReadWhole(entry.path());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    WriteDurably(entry.path(), bytes);
  }
  request.settings.ratios_ppm = {500'000};
  const auto error = ErrorOf([&] { Evaluate(request, Nothing); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), engine::ErrorKind::kDataLoss);
}

TEST_F(EvaluationTest, ADocumentThatDoesntFitIsListedAndTheOthersAreEvaluated) {
  const std::filesystem::path model = folder_.path() / "model";
  std::filesystem::copy(engine::testing::Reference("models/tiny-llama"), model);
  Json config = Json::parse(ReadWhole(model / "config.json"));
  config["max_position_embeddings"] = 150;
  WriteDurably(model / "config.json", config.dump());
  EvaluationRequest request = Request(Output());
  request.engine = engine::Engine::Load({.model_dir = model, .dtype = "float32", .threads = 1});
  request.settings.modes = {Mode::kBase};
  const Summary summary = Evaluate(request, Nothing);
  ASSERT_EQ(summary.skipped.size(), 1U);
  EXPECT_EQ(summary.skipped[0].document, "ships/1");
  EXPECT_NE(summary.skipped[0].reason.find("150 positions"), std::string::npos);
  EXPECT_EQ(summary.predictions, 2U * 3U);
  const auto listed = Lines(Output() / "skipped.jsonl");
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["document"], "ships/1");
}

TEST_F(EvaluationTest, WithoutAnAcceptablePairTheSupervisionIsListed) {
  EvaluationRequest request = Request(Output());
  request.settings.supervisions = {Supervision::kSyntheticQa, Supervision::kRawContext};
  request.settings.seen_part = 0.0;
  request.settings.synthetic_pairs = 2;
  const Summary summary = Evaluate(request, Nothing);
  size_t asked = 0;
  for (const Json& line : Lines(Predictions())) asked += line["supervision"] == "SYNTHETIC_QA";
  EXPECT_EQ(
      asked / (3 * 3) +
          [&] {
            size_t skipped = 0;
            for (const Skipped& one : summary.skipped) {
              EXPECT_EQ(one.supervision, Supervision::kSyntheticQa);
              skipped += one.document == "bees" ? 2U : 3U;
            }
            return skipped;
          }(),
      kQuestions);
}

}  // namespace
}  // namespace docmem::eval
