#include "engine/engine.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <tuple>

#include "engine/artifacts/cache_file.h"
#include "engine/compression/prefill.h"
#include "engine/formats/error.h"
#include "engine/load_options.h"
#include "engine/model/testing.h"
#include "engine/testing.h"

namespace docmem::engine {
namespace {

using testing::CacheOfKept;
using testing::GoldenAdapter;
using testing::Ingest;
using testing::Reference;
using testing::RunAlone;
using testing::TemporaryFolder;
using testing::TinyEngine;

const std::string kDocument =
    "The library opens at nine and closes at six, but never on Mondays. It was founded in 1887 by "
    "two sisters who collected maps, and still owns more maps than novels.";

struct Refusal {
  ErrorKind kind = ErrorKind::kNotFound;
  std::string field;
  std::string text = "accepted";
};

Refusal Try(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.kind(), error.field(), error.what()};
  }
  return {};
}

std::string FileOf(const Cache& cache) {
  std::string file;
  WriteCacheFile(cache, [&file](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return file;
}

SharedBytes Share(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {.owner = owner, .bytes = std::as_bytes(std::span(*owner))};
}

EngineOptions TinyOptions() { return {.model_dir = Reference("models/tiny-llama"), .threads = 1}; }

TEST(EngineLoadTest, ComposesModelTokenizerAndPromptFormat) {
  EngineOptions options = TinyOptions();
  options.dtype = "bfloat16";
  options.threads = 1;
  double last = 0.0;
  const auto engine = Engine::Load(options, [&last](double progress) {
    EXPECT_GE(progress, last);
    last = progress;
  });
  EXPECT_EQ(last, 1.0);
  EXPECT_EQ(engine->identity().dtype, "bfloat16");
  EXPECT_EQ(engine->identity().tokenizer_digest, engine->tokenizer().digest());
  EXPECT_EQ(engine->prompt_format().name(), "chatml");
  EXPECT_EQ(engine->config().layers, 2);
  EXPECT_GT(engine->weight_bytes(), 0U);
}

TEST(EngineLoadTest, ThePromptFormatCanBeChosen) {
  EngineOptions options = TinyOptions();
  options.prompt_format = "plain";
  EXPECT_EQ(Engine::Load(options)->prompt_format().name(), "plain");
  options.prompt_format = "prose";
  EXPECT_EQ(Try([&] { Engine::Load(options); }).kind, ErrorKind::kInvalidArgument);
  options.prompt_format = "/nowhere/format.json";
  EXPECT_EQ(Try([&] { Engine::Load(options); }).text.find("accepted"), std::string::npos);
}

TEST(EngineLoadTest, SettingsThatDontExistAreRefusedByName) {
  const std::pair<const char*, std::function<void(EngineOptions&)>> cases[] = {
      {"device", [](EngineOptions& o) { o.device = "tpu"; }},
      {"device", [](EngineOptions& o) { o.device = ""; }},
      {"dtype", [](EngineOptions& o) { o.dtype = "float16"; }},
      {"threads", [](EngineOptions& o) { o.threads = -1; }}};
  for (const auto& [field, change] : cases) {
    EngineOptions options = TinyOptions();
    change(options);
    const Refusal refusal = Try([&] { Engine::Load(options); });
    EXPECT_EQ(refusal.kind, ErrorKind::kInvalidArgument) << field;
    EXPECT_EQ(refusal.field, field);
  }
}

#ifndef DOCMEM_CUDA
TEST(EngineLoadTest, AGpuNeedsAProgramBuiltForIt) {
  const Refusal refusal = Try([] { ParseDevice("cuda:0"); });
  EXPECT_EQ(refusal.kind, ErrorKind::kFailedPrecondition);
  EXPECT_NE(refusal.text.find("DOCMEM_CUDA"), std::string::npos);
}
#endif

TEST(EngineLoadTest, AutoIsResolvedBeforeItIsUsed) {
  const ComputeType resolved = ResolveDtype("auto", at::kCPU);
  EXPECT_TRUE(resolved.dtype == at::kFloat || resolved.dtype == at::kBFloat16);
  EXPECT_EQ(Engine::Load(TinyOptions())->identity().dtype, resolved.name);
}

TEST(EngineLoadTest, ATokenizerThatIsTooLargeForTheModelIsRefused) {
  const TemporaryFolder folder;
  std::filesystem::copy(Reference("models/tiny-qwen3"), folder.path());
  std::filesystem::remove(folder.path() / "tokenizer.json");
  std::filesystem::copy_file(Reference("models/tiny-llama/tokenizer.json"),
                             folder.path() / "tokenizer.json");
  const Refusal refusal = Try([&] { Engine::Load({.model_dir = folder.path(), .threads = 1}); });
  EXPECT_EQ(refusal.kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(refusal.field, "tokenizer.json");
}

class EngineTest : public ::testing::Test {
 protected:
  const std::shared_ptr<const Engine> engine_ = TinyEngine("tiny-llama");
};

TEST_F(EngineTest, AContextIsTheHeadAndTheDocumentEncodedApart) {
  const Context context = engine_->EncodeContext("Be brief.", kDocument, 512);
  std::vector<int32_t> ids = engine_->prompt_format().HeadIds("Be brief.");
  EXPECT_EQ(context.head_tokens, static_cast<int64_t>(ids.size()));
  const std::vector<int32_t> document = engine_->tokenizer().EncodeUser(kDocument);
  ids.insert(ids.end(), document.begin(), document.end());
  EXPECT_EQ(context.ids, ids);
  EXPECT_EQ(
      engine_->EncodeContext("", kDocument, 0).ids,
      engine_->EncodeContext(engine_->prompt_format().default_system_text(), kDocument, 0).ids);
}

TEST(EnginePromptTest, AWholePromptHasOneBosForLlama3AndNoneForQwenWhateverUsersWrite) {
  for (const auto& [model, spelling, expected] :
       {std::tuple("tiny-llama-rope3", "<|begin_of_text|>", 1),
        {"tiny-qwen3", "<|endoftext|>", 0}}) {
    const auto engine = TinyEngine(model);
    const std::string text = spelling + kDocument + spelling;
    const std::vector<Turn> history = {{.question = text, .answer = text}};
    std::vector<int32_t> prompt = engine->EncodeContext(text, text, 0).ids;
    const std::vector<int32_t> question = engine->prompt_format().QuestionIds(history, text, text);
    prompt.insert(prompt.end(), question.begin(), question.end());
    const int32_t bos = engine->tokenizer().TokenId(spelling).value();
    EXPECT_EQ(std::ranges::count(prompt, bos), expected) << model;
  }
}

TEST_F(EngineTest, DocumentsThatCantBeReadAreRefused) {
  EXPECT_EQ(Try([&] { engine_->EncodeContext("", "", 0); }).field, "document");
  EXPECT_EQ(Try([&] { engine_->EncodeContext("", "\xFF", 0); }).kind, ErrorKind::kInvalidArgument);
  const Refusal cancelled =
      Try([&] { engine_->EncodeContext("", std::string(1 << 20, 'a'), 0, [] { return true; }); });
  EXPECT_EQ(cancelled.kind, ErrorKind::kCancelled);
}

TEST_F(EngineTest, ADocumentLongerThanTheModelsPositionsIsRefusedWithBothNumbers) {
  const Context context = engine_->EncodeContext("", kDocument, 0);
  const int64_t room = 131'072 - static_cast<int64_t>(context.ids.size());
  EXPECT_NO_THROW(engine_->EncodeContext("", kDocument, room));
  const Refusal refusal = Try([&] { engine_->EncodeContext("", kDocument, room + 1); });
  EXPECT_EQ(refusal.kind, ErrorKind::kInvalidArgument);
  EXPECT_NE(refusal.text.find("131073"), std::string::npos) << refusal.text;
  EXPECT_NE(refusal.text.find("131072"), std::string::npos) << refusal.text;
}

TEST_F(EngineTest, OneIngestionGivesOneCachePerCompressionWithTheIdentityToldBefore) {
  const Context context = engine_->EncodeContext("", kDocument, 512);
  const std::vector<Compression> compressions = {
      {.ratio_ppm = 0}, {.ratio_ppm = 500'000}, {.ratio_ppm = kRatioOnePpm}};
  const auto ingestion = engine_->StartIngestion(context, compressions);
  double last = 0.0;
  bool done = false;
  while (!done) {
    done = ingestion->Step();
    EXPECT_GE(ingestion->progress(), last);
    last = ingestion->progress();
  }
  EXPECT_EQ(last, 1.0);
  EXPECT_GT(ingestion->score_seconds(), 0.0);
  const auto caches = ingestion->TakeCaches();
  ASSERT_EQ(caches.size(), 3U);
  for (size_t i = 0; i < caches.size(); ++i) {
    EXPECT_EQ(caches[i]->identity(), engine_->IdentityOf(context, compressions[i]));
    EXPECT_EQ(caches[i]->kept_tokens(), KeptTokens(static_cast<int64_t>(context.ids.size()),
                                                   context.head_tokens, compressions[i].ratio_ppm));
    EXPECT_EQ(engine_->CacheBytes(caches[i]->kept_tokens()), CacheFileBytes(*caches[i]));
  }
  EXPECT_EQ(caches[0]->identity().scorer, "none");
  EXPECT_EQ(caches[1]->identity().scorer, "base");
  EXPECT_EQ(caches[2]->identity().profile, "none");
}

TEST_F(EngineTest, AnAdapterThatIsLoadedButInactiveDoesntChangeIngestion) {
  const Context context = engine_->EncodeContext("", kDocument, 512);
  const Compression compression{.ratio_ppm = 500'000};
  const auto before = Ingest(*engine_, context, compression);
  const auto adapter = GoldenAdapter(*engine_, "all-modules");
  RunAlone(engine_, {.cache = before,
                     .adapter = adapter,
                     .prompt_ids = engine_->prompt_format().QuestionIds({}, "", "When?"),
                     .max_tokens = 8});
  EXPECT_EQ(FileOf(*Ingest(*engine_, context, compression)), FileOf(*before));

  Prefill active(engine_->transformer(), {.context_ids = {context.ids.begin(), context.ids.end()},
                                          .head_tokens = context.head_tokens,
                                          .compressions = {compression},
                                          .writer = &adapter->weights()});
  while (!active.Step()) {
  }
  EXPECT_FALSE(active.TakeResults().front().keys.allclose(before->rows().keys));
}

TEST_F(EngineTest, EveryModeMakesItsCacheUnderItsIdentity) {
  const Context context = engine_->EncodeContext("", kDocument, 512);
  const auto adapter = GoldenAdapter(*engine_, "all-modules");
  const std::string& hash = adapter->content_hash();
  const Compression half{.ratio_ppm = 500'000}, whole{.ratio_ppm = 0};
  const struct {
    Mode mode;
    std::string writer, scorer;
  } cases[] = {{Mode::kBase, "base", "base"},
               {Mode::kBaseKvAdapterDecode, "base", "base"},
               {Mode::kAdapterPrefill, hash, hash},
               {Mode::kBaseScoreAdapterPrefill, hash, "base"}};
  std::set<std::string> digests;
  for (const auto& [mode, writer, scorer] : cases) {
    const auto ingestion =
        engine_->StartIngestion(context, {half, whole}, {.mode = mode, .adapter = adapter});
    double last = 0.0;
    while (!ingestion->Step()) {
      EXPECT_GE(ingestion->progress(), last);
      last = ingestion->progress();
    }
    EXPECT_EQ(ingestion->progress(), 1.0);
    const auto caches = ingestion->TakeCaches();
    EXPECT_EQ(caches[0]->identity(), engine_->IdentityOf(context, half, mode, hash));
    EXPECT_EQ(caches[1]->identity(), engine_->IdentityOf(context, whole, mode, hash));
    EXPECT_EQ(caches[0]->identity().writer, writer);
    EXPECT_EQ(caches[0]->identity().scorer, scorer);
    EXPECT_EQ(caches[1]->identity().scorer, "none");
    digests.insert(caches[0]->identity().Digest());
  }
  EXPECT_EQ(digests.size(), 3U);
  EXPECT_EQ(engine_->IdentityOf(context, whole, Mode::kAdapterPrefill, hash),
            engine_->IdentityOf(context, whole, Mode::kBaseScoreAdapterPrefill, hash));
}

TEST_F(EngineTest, BaseChoosesAndTheAdapterWritesExactlyThesePositions) {
  const Context context = engine_->EncodeContext("", kDocument, 512);
  const auto adapter = GoldenAdapter(*engine_, "all-modules");
  for (const Profile profile : {Profile::kCompactor, Profile::kCompactorVllm, Profile::kKnorm}) {
    const Compression compression{.ratio_ppm = 300'000, .profile = profile};
    const auto base = Ingest(*engine_, context, compression);
    const auto mixed = Ingest(*engine_, context, compression,
                              {.mode = Mode::kBaseScoreAdapterPrefill, .adapter = adapter});
    const auto expected =
        CacheOfKept(*engine_, context, {base->rows().positions, base->rows().offsets},
                    {.mode = Mode::kAdapterPrefill, .adapter = adapter});
    EXPECT_TRUE(at::equal(mixed->rows().positions, base->rows().positions));
    EXPECT_TRUE(at::equal(mixed->rows().offsets, base->rows().offsets));
    EXPECT_TRUE(at::equal(mixed->rows().keys, expected->rows().keys));
    EXPECT_TRUE(at::equal(mixed->rows().values, expected->rows().values));
    EXPECT_FALSE(mixed->rows().keys.allclose(base->rows().keys));
  }
}

TEST_F(EngineTest, AModeOfAnAdapterNeedsOne) {
  const Context context = engine_->EncodeContext("", kDocument, 512);
  for (const Mode mode : {Mode::kAdapterPrefill, Mode::kBaseScoreAdapterPrefill}) {
    const Refusal refusal = Try([&] { engine_->StartIngestion(context, {{}}, {.mode = mode}); });
    EXPECT_EQ(refusal.kind, ErrorKind::kInvalidArgument);
    EXPECT_EQ(refusal.field, "adapter");
  }
}

TEST_F(EngineTest, ARaggedCacheIsStoredAndLoaded) {
  const Context context = engine_->EncodeContext("", kDocument + kDocument, 512);
  const auto cache =
      Ingest(*engine_, context, {.ratio_ppm = 300'000, .profile = Profile::kCompactorVllm});
  EXPECT_TRUE(cache->Ragged(0) || cache->Ragged(1));
  EXPECT_EQ(engine_->CacheBytes(cache->kept_tokens()), CacheFileBytes(*cache));
  const auto loaded = engine_->LoadCache(Share(FileOf(*cache)));
  EXPECT_TRUE(at::equal(loaded->rows().offsets, cache->rows().offsets));
  EXPECT_TRUE(at::equal(loaded->rows().keys, cache->rows().keys));
  EXPECT_EQ(loaded->identity(), cache->identity());
}

TEST_F(EngineTest, AStoredCacheAnswersAsTheOneInMemory) {
  const Context context = engine_->EncodeContext("", kDocument, 512);
  const auto cache = Ingest(*engine_, context, {.ratio_ppm = 700'000});
  const auto loaded = engine_->LoadCache(Share(FileOf(*cache)));
  const std::vector<int32_t> question = engine_->prompt_format().QuestionIds({}, "", "Who?");
  const auto answer = RunAlone(engine_, {.cache = cache, .prompt_ids = question, .max_tokens = 16});
  const auto again = RunAlone(engine_, {.cache = loaded, .prompt_ids = question, .max_tokens = 16});
  EXPECT_EQ(answer.ids, again.ids);
  EXPECT_EQ(answer.logprobs, again.logprobs);
}

TEST_F(EngineTest, ACacheOfAnotherModelDtypeOrRopeIsRefusedByTheFieldThatDiffers) {
  const Context context = engine_->EncodeContext("", kDocument, 512);
  const std::string file = FileOf(*Ingest(*engine_, context, {}));
  const auto blamed = [&](const Engine& other) {
    const Refusal refusal = Try([&] { other.LoadCache(Share(file)); });
    EXPECT_EQ(refusal.kind, ErrorKind::kFailedPrecondition);
    return refusal.field;
  };
  EXPECT_EQ(blamed(*TinyEngine("tiny-llama", "bfloat16")), "dtype");
  EXPECT_EQ(blamed(*TinyEngine("tiny-llama-rope3")), "weights_digest");

  const TemporaryFolder folder;
  std::filesystem::copy(Reference("models/tiny-llama"), folder.path());
  std::ifstream original(Reference("models/tiny-llama/config.json"));
  std::string config{std::istreambuf_iterator<char>(original), {}};
  const std::string theta = "\"rope_theta\": 100000.0";
  ASSERT_NE(config.find(theta), std::string::npos);
  config.replace(config.find(theta), theta.size(), "\"rope_theta\": 500000.0");
  std::ofstream(folder.path() / "config.json") << config;
  EXPECT_EQ(blamed(*Engine::Load({.model_dir = folder.path(), .dtype = "float32", .threads = 1})),
            "config_digest");
}

TEST_F(EngineTest, ACacheThatClaimsToBeTheModelsButHasOtherShapesIsDataLoss) {
  const auto cache = Ingest(*engine_, engine_->EncodeContext("", kDocument, 0), {});
  const Cache narrow(cache->identity(), 2, 2,
                     {.keys = cache->rows().keys.narrow(1, 0, 32),
                      .values = cache->rows().values.narrow(1, 0, 32),
                      .positions = cache->rows().positions,
                      .offsets = cache->rows().offsets});
  const Refusal refusal = Try([&] { engine_->LoadCache(Share(FileOf(narrow))); });
  EXPECT_EQ(refusal.kind, ErrorKind::kDataLoss);
  EXPECT_EQ(refusal.field, "keys");
}

TEST_F(EngineTest, IngestionPeakIsTwoAndAHalfTimesOneLayersRowsAndTwoHiddenStates) {
  EXPECT_EQ(engine_->IngestionPeakBytes(1000), 1000U * (2 * 2 * 64 + 2 * 64) * 4 * 5 / 2);
}

}  // namespace
}  // namespace docmem::engine
