#include "server/ingest/builder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/formats/digest.h"
#include "server/errors/error.h"
#include "server/runtime/test_event.h"
#include "server/runtime/testing.h"

namespace docmem::server {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

class RecordingSink : public BuildSink {
 public:
  void OnProgress(const BuildProgress& progress) override {
    const std::lock_guard<std::mutex> lock(mutex);
    phases.push_back(progress.phase);
  }
  void OnClosed(const absl::StatusOr<BuildResult>& end) override {
    result = end;
    closed.Notify();
  }
  const absl::StatusOr<BuildResult>& Wait() {
    EXPECT_TRUE(closed.WaitFor(kPatience));
    return result;
  }

  std::mutex mutex;
  std::vector<BuildProgress::Phase> phases;
  absl::StatusOr<BuildResult> result = absl::UnknownError("nothing came");
  TestEvent closed;
};

class BuilderTest : public testing::Test {
 protected:
  ~BuilderTest() override { parts_.StopThreads(); }

  static IngestRequest Request(const std::string& id, const std::string& text,
                               const std::vector<uint32_t>& ratios_ppm) {
    IngestRequest request;
    request.key = {"default", id};
    request.text = text;
    request.text_sha256 = engine::Sha256Hex(text);
    for (const uint32_t ratio : ratios_ppm) request.compressions.push_back({.ratio_ppm = ratio});
    return request;
  }

  absl::StatusOr<BuildResult> Ingest(IngestRequest request) {
    const auto sink = std::make_shared<RecordingSink>();
    const auto ticket = builder_.Ingest(std::move(request), false, sink);
    if (!ticket.ok()) return ticket.status();
    return sink->Wait();
  }

  absl::StatusOr<BuildResult> Build(CacheBuildRequest request) {
    const auto sink = std::make_shared<RecordingSink>();
    const auto ticket = builder_.BuildCaches(std::move(request), sink);
    if (!ticket.ok()) return ticket.status();
    return sink->Wait();
  }

  TestParts parts_;
  Builder builder_{{.engine = TinyEngine(),
                    .store = parts_.store.get(),
                    .memories = &parts_.memories,
                    .loop = &parts_.loop,
                    .timer = &parts_.timer,
                    .executor = &parts_.executor,
                    .metrics = &parts_.metrics},
                   {}};
};

TEST_F(BuilderTest, OnePrefillMakesACachePerRatioAndTheFirstIsTheDefault) {
  const auto result = Ingest(Request("d", TinyDocument(), {900'000, 0, 1'000'000}));
  ASSERT_TRUE(result.ok()) << result.status();
  const store::Document& document = result->document;
  EXPECT_EQ(document.state, store::DocumentState::kReady);
  ASSERT_EQ(document.caches.size(), 3U);
  EXPECT_EQ(document.default_cache_id, result->cache_ids[0]);
  EXPECT_EQ(result->built_cache_ids, result->cache_ids);
  const store::CacheSpec& all_evicted = document.caches[2].spec;
  EXPECT_EQ(all_evicted.kept_tokens, all_evicted.head_tokens);
  EXPECT_EQ(document.caches[1].spec.kept_tokens, document.caches[1].spec.context_tokens);
  EXPECT_EQ(parts_.store->ReadText(document.key).value(), TinyDocument());
}

TEST_F(BuilderTest, TheSameAgainIsNoWorkAndAnotherRatioIsOneMoreCache) {
  const auto first = Ingest(Request("d", TinyDocument(), {900'000}));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto again = Ingest(Request("d", TinyDocument(), {900'000}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->built_cache_ids.empty());
  EXPECT_EQ(again->document.revision, first->document.revision);
  const auto more = Ingest(Request("d", TinyDocument(), {900'000, 500'000}));
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(more->built_cache_ids.size(), 1U);
  EXPECT_EQ(more->document.caches.size(), 2U);
  EXPECT_EQ(more->document.default_cache_id, first->document.default_cache_id);
}

TEST_F(BuilderTest, OtherOptionsOfAStoredDocumentAreRefusedByName) {
  IngestRequest titled = Request("d", TinyDocument(), {900'000});
  titled.title = "one";
  ASSERT_TRUE(Ingest(titled).ok());
  titled.title = "two";
  const auto refused = Ingest(titled);
  EXPECT_EQ(store::ReasonOf(refused.status()), reason::kOptionsDiffer);
  EXPECT_EQ(store::DetailsOf(refused.status()).at("field"), "title");
}

TEST_F(BuilderTest, AnotherTextNeedsReplaceWithTheRevisionAndDropsTheOldCaches) {
  const auto first = Ingest(Request("d", TinyDocument(), {900'000}));
  ASSERT_TRUE(first.ok()) << first.status();
  IngestRequest other = Request("d", TinyDocument() + "More.", {500'000});
  EXPECT_EQ(store::ReasonOf(Ingest(other).status()), reason::kDocumentExists);
  other.replace = true;
  other.revision = first->document.revision + 7;
  EXPECT_EQ(store::ReasonOf(Ingest(other).status()), reason::kRevisionMismatch);
  other.revision = first->document.revision;
  const auto replaced = Ingest(other);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  ASSERT_EQ(replaced->document.caches.size(), 1U);
  EXPECT_EQ(replaced->document.caches[0].spec.ratio_ppm, 500'000U);
  EXPECT_EQ(parts_.store->ReadText(other.key).value(), other.text);
}

TEST_F(BuilderTest, ADocumentThatDoesNotFitThePositionsLeavesNoTrace) {
  const auto positions = static_cast<size_t>(TinyEngine()->config().max_positions);
  std::string text;
  while (text.size() < positions * 4) text += "0123456789 ";
  const auto refused = Ingest(Request("long", text, {900'000}));
  EXPECT_EQ(store::ReasonOf(refused.status()), reason::kContextTooLong) << refused.status();
  EXPECT_TRUE(absl::IsNotFound(parts_.store->GetDocument({"default", "long"}).status()));
}

TEST_F(BuilderTest, AClientThatLeavesTakesItsUnfinishedDocumentWithIt) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += TinyDocument();
  const auto sink = std::make_shared<RecordingSink>();
  const auto ticket = builder_.Ingest(Request("d", text, {900'000}), false, sink);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  builder_.Leave(*ticket);
  const absl::Time limit = absl::Now() + kPatience;
  while (builder_.builds() > 0 && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(builder_.builds(), 0U);
  EXPECT_TRUE(absl::IsNotFound(parts_.store->GetDocument({"default", "d"}).status()));
}

TEST_F(BuilderTest, ABuildThatOthersJoinedOrThatIsDetachedGoesOn) {
  const auto leaver = std::make_shared<RecordingSink>();
  const auto joiner = std::make_shared<RecordingSink>();
  const auto ticket = builder_.Ingest(Request("joined", TinyDocument(), {900'000}), false, leaver);
  ASSERT_TRUE(ticket.ok());
  ASSERT_TRUE(builder_.Ingest(Request("joined", TinyDocument(), {900'000}), false, joiner).ok());
  builder_.Leave(*ticket);
  ASSERT_TRUE(joiner->Wait().ok()) << joiner->result.status();

  const auto gone = std::make_shared<RecordingSink>();
  const auto detached = builder_.Ingest(Request("alone", TinyDocument(), {900'000}), true, gone);
  ASSERT_TRUE(detached.ok());
  builder_.Leave(*detached);
  const absl::Time limit = absl::Now() + kPatience;
  while (builder_.builds() > 0 && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(5));
  const auto document = parts_.store->GetDocument({"default", "alone"});
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->state, store::DocumentState::kReady);
}

TEST_F(BuilderTest, ACacheIsBuiltFromTheRetainedTextOnly) {
  ASSERT_TRUE(Ingest(Request("kept", TinyDocument(), {900'000})).ok());
  IngestRequest dropped = Request("dropped", TinyDocument(), {900'000});
  dropped.retain_text = false;
  ASSERT_TRUE(Ingest(dropped).ok());

  const auto build = [&](const std::string& id) {
    return Build({.key = {"default", id}, .compressions = {{.ratio_ppm = 500'000}}});
  };
  const auto built = build("kept");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->built_cache_ids.size(), 1U);
  EXPECT_EQ(built->document.caches.size(), 2U);
  EXPECT_EQ(store::ReasonOf(build("dropped").status()), reason::kTextNotRetained);
  EXPECT_EQ(store::ReasonOf(build("absent").status()), reason::kDocumentNotFound);
}

TEST_F(BuilderTest, AnAdaptersCachesNameTheirMakersAndHoldNoLeaseWhenBuilt) {
  const store::Document document = parts_.Publish("d", {900'000});
  const std::string hash = parts_.PublishAdapter(document.key, "all-modules").spec.hash;
  CacheBuildRequest request{.key = document.key,
                            .compressions = {{.ratio_ppm = 500'000}, {.ratio_ppm = 0}},
                            .maker = {.mode = engine::Mode::kAdapterPrefill}};
  const auto scored = Build(request);
  ASSERT_TRUE(scored.ok()) << scored.status();
  request.maker.mode = engine::Mode::kBaseScoreAdapterPrefill;
  const auto written = Build(request);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->cache_ids[1], scored->cache_ids[1]) << "at ratio 0 the two modes coincide";
  EXPECT_EQ(written->built_cache_ids.size(), 1U);
  ASSERT_EQ(written->document.caches.size(), 4U);
  for (const store::Cache& cache : written->document.caches) {
    const bool is_base = cache.spec.id == document.caches.front().spec.id;
    EXPECT_EQ(cache.spec.writer_adapter_hash, is_base ? "" : hash);
    EXPECT_EQ(cache.spec.scorer_adapter_hash, cache.spec.id == scored->cache_ids[0] ? hash : "");
  }
  for (const ResidentMemory& memory : parts_.memories.Residents()) {
    EXPECT_EQ(memory.resident.leases, 0U);
  }
}

TEST_F(BuilderTest, AnAdapterThatCannotWriteIsRefusedByName) {
  const store::Document document = parts_.Publish("d", {900'000});
  CacheBuildRequest request{.key = document.key,
                            .compressions = {{.ratio_ppm = 0}},
                            .maker = {.mode = engine::Mode::kAdapterPrefill}};
  EXPECT_EQ(store::ReasonOf(Build(request).status()), reason::kNoCurrentAdapter);
  request.maker.adapter_version = 3;
  EXPECT_EQ(store::ReasonOf(Build(request).status()), reason::kAdapterNotFound);
  EXPECT_EQ(parts_.store->GetDocument(document.key)->caches.size(), 1U);
}

TEST_F(BuilderTest, AnAdapterDeletedWhileItsCacheIsBuiltLeavesNone) {
  const store::Document document = parts_.Publish("d", {900'000});
  parts_.PublishAdapter(document.key, "all-modules");
  ASSERT_TRUE(parts_.store->SetCurrentAdapter(document.key, 0, 0).ok());
  // Deletes it as soon as it is prefilling: it has been looked up and leased.
  class DeletingSink : public RecordingSink {
   public:
    explicit DeletingSink(store::AdapterStore* store) : store_(store) {}
    void OnProgress(const BuildProgress& progress) override {
      if (progress.phase != BuildProgress::Phase::kPrefilling || done_.exchange(true)) return;
      EXPECT_TRUE(store_->DeleteAdapter({"default", "d"}, 1).ok());
    }

   private:
    store::AdapterStore* const store_;
    std::atomic<bool> done_{false};
  };
  const auto sink = std::make_shared<DeletingSink>(parts_.store.get());
  CacheBuildRequest request{.key = document.key,
                            .compressions = {{.ratio_ppm = 500'000}},
                            .maker = {.mode = engine::Mode::kAdapterPrefill, .adapter_version = 1}};
  ASSERT_TRUE(builder_.BuildCaches(std::move(request), sink).ok());
  EXPECT_EQ(store::ReasonOf(sink->Wait().status()), reason::kAdapterNotFound);
  EXPECT_EQ(parts_.store->GetDocument(document.key)->caches.size(), 1U);
}

TEST_F(BuilderTest, ProfilesAndKvDtypesAreCachesOfTheirOwn) {
  IngestRequest request = Request("d", TinyDocument(), {});
  request.compressions = {{.ratio_ppm = 500'000},
                          {.ratio_ppm = 500'000, .profile = engine::Profile::kStreaming},
                          {.ratio_ppm = 500'000, .int8 = true}};
  const auto result = Ingest(request);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<store::Cache>& caches = result->document.caches;
  ASSERT_EQ(caches.size(), 3U);
  EXPECT_EQ(caches[1].spec.profile, "streaming");
  EXPECT_EQ(caches[0].spec.kv_dtype, builder_.kv_dtype());
  EXPECT_EQ(caches[2].spec.kv_dtype, "int8");
  EXPECT_LT(caches[2].file.bytes, caches[0].file.bytes / 2);
}

TEST_F(BuilderTest, ProgressNamesThePhasesInOrder) {
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(builder_.Ingest(Request("d", TinyDocument(), {500'000}), false, sink).ok());
  ASSERT_TRUE(sink->Wait().ok());
  const std::lock_guard<std::mutex> lock(sink->mutex);
  EXPECT_TRUE(std::is_sorted(sink->phases.begin(), sink->phases.end()));
  EXPECT_EQ(sink->phases.back(), BuildProgress::Phase::kPublishing);
}

}  // namespace
}  // namespace docmem::server
