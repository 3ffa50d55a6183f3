#include <string>

#include "adapter_store/document_import.h"
#include "adapter_store/testing/adapter_store_fixture.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterStoreTest;
using store_test::FileOf;
using store_test::Ingest;
using store_test::Key;
using store_test::ReadAll;
using store_test::SpecOf;

const TrainingJobEdit kSucceeds{.state = TrainingJobState::kSucceeded};

class TrainingJobsTest : public AdapterStoreTest {
 protected:
  void SetUp() override {
    AdapterStoreTest::SetUp();
    ASSERT_OK(Ingest(*store_, Key("a"), "text", 1));
  }

  int64_t Add(const DocumentKey& key = Key("a")) {
    const auto job = store_->AddTrainingJob(key, "request", "report");
    EXPECT_OK(job);
    return job.ok() ? job->id : 0;
  }

  absl::Status Save(int64_t job, const std::string& bytes) {
    return store_->PublishTrainingCheckpoint(job, FileOf("state", bytes), "saved " + bytes);
  }

  absl::StatusOr<std::optional<TrainingJob>> Claim() {
    return store_->ClaimTrainingJob(absl::Minutes(1));
  }

  std::vector<int64_t> Listed(const std::string& document, const PageRequest& page = {}) {
    const auto jobs = store_->ListTrainingJobs("default", document, page);
    EXPECT_OK(jobs);
    std::vector<int64_t> ids;
    for (const TrainingJob& job : jobs->items) ids.push_back(job.id);
    return ids;
  }
};

using Ids = std::vector<int64_t>;

TEST_F(TrainingJobsTest, JobIsQueuedAndKeepsEverythingOverARestart) {
  const std::string request("\0\xff what to train", 16);
  const auto added = store_->AddTrainingJob(Key("a"), request, "");
  ASSERT_OK(added);
  EXPECT_EQ(added->id, 1);
  EXPECT_EQ(added->state, TrainingJobState::kQueued);
  now_ += absl::Seconds(5);
  ASSERT_OK(Save(1, "weights"));
  now_ += absl::Seconds(5);
  const auto running = store_->UpdateTrainingJob(1, {.state = TrainingJobState::kRunning});
  ASSERT_OK(running);
  EXPECT_EQ(running->report, "saved weights");
  Open();
  const auto job = store_->GetTrainingJob(1);
  ASSERT_OK(job);
  EXPECT_EQ(job->document, Key("a"));
  EXPECT_EQ(job->document_row, store_->GetDocument(Key("a"))->row);
  EXPECT_EQ(job->state, TrainingJobState::kRunning);
  EXPECT_EQ(job->request, request);
  EXPECT_EQ(job->report, "saved weights");
  EXPECT_EQ(job->updated - job->created, absl::Seconds(10));
  ASSERT_TRUE(job->checkpoint.has_value());
  EXPECT_EQ(job->checkpoint->kind, ArtifactKind::kCheckpoint);
  EXPECT_EQ(job->checkpoint->name, "state");
  EXPECT_EQ(*ReadAll(*store_, *job->checkpoint), "weights");
}

TEST_F(TrainingJobsTest, OnlyAReadyDocumentIsTrained) {
  ASSERT_OK(store_->BeginDocument(Key("building"), SpecOf("text"), 0));
  EXPECT_EQ(ReasonOf(store_->AddTrainingJob(Key("building"), "", "").status()),
            reason::kDocumentNotReady);
  EXPECT_EQ(ReasonOf(store_->AddTrainingJob(Key("absent"), "", "").status()),
            reason::kDocumentNotFound);
  EXPECT_TRUE(absl::IsInvalidArgument(store_->AddTrainingJob(Key("../a"), "", "").status()));
}

TEST_F(TrainingJobsTest, AJobThatIsNotThereIsNotFound) {
  for (const int64_t id : {-1, 0, 7}) {
    for (const absl::Status& status : {store_->GetTrainingJob(id).status(),
                                       store_->UpdateTrainingJob(id, {}).status(), Save(id, "x")}) {
      EXPECT_TRUE(absl::IsNotFound(status)) << status;
      EXPECT_EQ(ReasonOf(status), reason::kJobNotFound);
    }
  }
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(TrainingJobsTest, ListIsNewestFirstInPagesOfADocumentOrACollection) {
  ASSERT_OK(Ingest(*store_, Key("b"), "text", 1));
  for (const char* id : {"a", "b", "a", "a", "b"}) Add(Key(id));
  EXPECT_EQ(Listed("a"), (Ids{4, 3, 1}));
  EXPECT_EQ(Listed("b"), (Ids{5, 2}));
  const auto first = store_->ListTrainingJobs("default", "", {.size = 2});
  ASSERT_OK(first);
  EXPECT_EQ(first->items[0].id, 5);
  EXPECT_EQ(first->items[0].document, Key("b"));
  Add();
  EXPECT_EQ(Listed("", {.size = 9, .token = first->next_token}), (Ids{3, 2, 1}));
  EXPECT_TRUE(absl::IsInvalidArgument(
      store_->ListTrainingJobs("default", "a", {.size = 9, .token = first->next_token}).status()));
  EXPECT_EQ(ReasonOf(store_->ListTrainingJobs("default", "c", {}).status()),
            reason::kDocumentNotFound);
  EXPECT_EQ(ReasonOf(store_->ListTrainingJobs("books", "", {}).status()),
            reason::kCollectionNotFound);
}

TEST_F(TrainingJobsTest, OpenJobsOfAllCollectionsAreClaimedOldestFirst) {
  ASSERT_OK(store_->CreateCollection("books", {}));
  ASSERT_OK(Ingest(*store_, {"books", "b"}, "text", 1));
  for (int i = 0; i < 3; ++i) Add();
  Add({"books", "b"});
  ASSERT_OK(store_->UpdateTrainingJob(3, {.state = TrainingJobState::kRunning}));
  ASSERT_OK(store_->UpdateTrainingJob(2, {.state = TrainingJobState::kCancelled}));
  EXPECT_EQ(*store_->CountOpenTrainingJobs(), 3u);
  EXPECT_EQ((*Claim())->id, 1);
  EXPECT_EQ((*Claim())->id, 1);  // its own
  ASSERT_OK(store_->UpdateTrainingJob(1, kSucceeds));
  Open();
  const auto next = Claim();
  ASSERT_TRUE(next.ok() && next->has_value());
  EXPECT_EQ((*next)->id, 3);
  EXPECT_EQ((*next)->state, TrainingJobState::kRunning);
  ASSERT_OK(store_->UpdateTrainingJob(3, kSucceeds));
  EXPECT_EQ((*Claim())->document, (DocumentKey{"books", "b"}));
  ASSERT_OK(store_->UpdateTrainingJob(4, kSucceeds));
  EXPECT_FALSE(Claim()->has_value());
  EXPECT_EQ(*store_->CountOpenTrainingJobs(), 0u);
}

TEST_F(TrainingJobsTest, EditChangesWhatIsSetUntilTheJobHasEnded) {
  Add();
  EXPECT_EQ(store_->UpdateTrainingJob(1, {.request = "other"})->report, "report");
  const auto ended =
      store_->UpdateTrainingJob(1, {.state = TrainingJobState::kFailed, .report = "out of memory"});
  ASSERT_OK(ended);
  EXPECT_EQ(ended->request, "other");
  EXPECT_EQ(ended->report, "out of memory");
  for (const absl::Status& status :
       {store_->UpdateTrainingJob(1, {.report = "x"}).status(), Save(1, "x")}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(ReasonOf(status), reason::kJobFinished);
  }
  EXPECT_EQ(store_->GetTrainingJob(1)->report, "out of memory");
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(TrainingJobsTest, CheckpointIsCountedReplacedAndDeletedAtTheEnd) {
  const uint64_t without = Used();
  Add();
  ASSERT_OK(Save(1, "one"));
  const StoredFile first = *store_->GetTrainingJob(1)->checkpoint;
  ASSERT_OK(Save(1, "another"));
  const TrainingJob job = *store_->GetTrainingJob(1);
  EXPECT_EQ(job.report, "saved another");
  EXPECT_EQ(*ReadAll(*store_, *job.checkpoint), "another");
  EXPECT_TRUE(absl::IsNotFound(ReadAll(*store_, first).status()));
  EXPECT_EQ(store_->Stats()->checkpoint.items, 1u);
  EXPECT_EQ(store_->Stats()->checkpoint.bytes, 7u);
  EXPECT_EQ(store_->GetDocument(Key("a"))->stored_bytes, without + 7);
  EXPECT_EQ(Used(), without + 7);
  EXPECT_EQ(Used(), OnDisk());
  const auto ended = store_->UpdateTrainingJob(1, kSucceeds);
  ASSERT_OK(ended);
  EXPECT_FALSE(ended->checkpoint.has_value());
  EXPECT_EQ(store_->Stats()->checkpoint.bytes, 0u);
  EXPECT_EQ(Used(), without);
  EXPECT_EQ(OnDisk(), without);
}

TEST_F(TrainingJobsTest, OfADocumentsEndedJobsTheLast32AreKept) {
  ASSERT_OK(Ingest(*store_, Key("b"), "text", 1));
  for (int i = 0; i < 36; ++i) Add();
  Add(Key("b"));
  ASSERT_OK(store_->UpdateTrainingJob(37, kSucceeds));
  for (int64_t id = 2; id <= 34; ++id) ASSERT_OK(store_->UpdateTrainingJob(id, kSucceeds));
  EXPECT_EQ(Listed("a").size(), 35u);
  EXPECT_EQ(ReasonOf(store_->GetTrainingJob(2).status()), reason::kJobNotFound);
  EXPECT_OK(store_->GetTrainingJob(3));
  ASSERT_OK(store_->UpdateTrainingJob(1, kSucceeds));
  EXPECT_TRUE(store_->GetTrainingJob(1).ok()) << "the oldest job, but the last to end";
  EXPECT_FALSE(store_->GetTrainingJob(3).ok());
  EXPECT_OK(store_->GetTrainingJob(37));
  EXPECT_EQ(*store_->CountOpenTrainingJobs(), 2u);
}

TEST_F(TrainingJobsTest, JobsAndCheckpointsGoWithTheirDocument) {
  Add();
  ASSERT_OK(Save(1, "weights"));
  ASSERT_OK(store_->DeleteDocument(Key("a"), 0));
  EXPECT_FALSE(store_->GetTrainingJob(1).ok());
  EXPECT_EQ(OnDisk(), 0u);
  const auto again = Ingest(*store_, Key("a"), "text", 1);
  ASSERT_OK(again);
  EXPECT_EQ(Add(), 2);
  ASSERT_OK(Save(2, "weights"));
  auto import = store_->BeginImport(Key("a"), again->revision);
  ASSERT_OK(import);
  ASSERT_OK((*import)->AddText("text"));
  ASSERT_OK((*import)->Publish({SpecOf("text"), 90, "", 0, ""}));
  EXPECT_FALSE(store_->GetTrainingJob(2).ok());
  EXPECT_EQ(store_->Stats()->checkpoint.items, 0u);
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(TrainingJobsTest, AnotherTextOfTheDocumentLeavesTheOpenJobWithItsCheckpoint) {
  Add();
  ASSERT_OK(Save(1, "weights"));
  const uint64_t revision = store_->GetDocument(Key("a"))->revision;
  ASSERT_OK(Ingest(*store_, Key("a"), "another text", 2, revision));
  DocumentEdit edit;
  edit.drop_text = true;
  ASSERT_OK(store_->UpdateDocument(Key("a"), 0, edit));
  Open();
  const auto job = store_->GetTrainingJob(1);
  ASSERT_OK(job);
  EXPECT_EQ(job->state, TrainingJobState::kQueued);
  ASSERT_TRUE(job->checkpoint.has_value());
  EXPECT_EQ(*ReadAll(*store_, *job->checkpoint), "weights");
  EXPECT_OK(store_->UpdateTrainingJob(1, {.state = TrainingJobState::kCancelled}));
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(TrainingJobsTest, WithoutRoomTheOlderCheckpointStays) {
  Add();
  ASSERT_OK(Save(1, "weights"));
  budget_ = Used() + 6;
  Open();
  const absl::Status full = Save(1, "heavier");
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_EQ(ReasonOf(full), reason::kDiskBudgetExceeded);
  EXPECT_EQ(store_->GetTrainingJob(1)->report, "saved weights");
  EXPECT_EQ(*ReadAll(*store_, *store_->GetTrainingJob(1)->checkpoint), "weights");
  EXPECT_OK(Save(1, "light"));
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(TrainingJobsTest, TheQuotaCountsTheNewCheckpointInPlaceOfTheOld) {
  Add();
  ASSERT_OK(Save(1, "weights"));
  const uint64_t limit = Used();
  ASSERT_OK(store_->UpdateCollection("default", 0, [&](CollectionSettings& settings) {
    settings.limits.max_bytes = limit;
    return absl::OkStatus();
  }));
  EXPECT_OK(Save(1, "as long"));
  EXPECT_EQ(ReasonOf(Save(1, "a bit longer")), reason::kQuotaMaxBytes);
  EXPECT_EQ(*ReadAll(*store_, *store_->GetTrainingJob(1)->checkpoint), "as long");
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(TrainingJobsTest, CheckpointNeedsANameOfAllowedLength) {
  Add();
  for (const std::string& name : {std::string(), std::string(129, 'x'), std::string("\xff")}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(store_->PublishTrainingCheckpoint(1, FileOf(name, "x"), "report")));
  }
}

TEST_F(TrainingJobsTest, DamagedCheckpointIsQuarantinedAndReplacedByTheNext) {
  Add();
  ASSERT_OK(Save(1, "weights"));
  FlipByte(*store_->GetTrainingJob(1)->checkpoint);
  const absl::Status damaged = ReadAll(*store_, *store_->GetTrainingJob(1)->checkpoint).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged));
  EXPECT_EQ(ReasonOf(damaged), reason::kArtifactDamaged);
  Open();
  EXPECT_TRUE(store_->GetTrainingJob(1)->checkpoint->quarantined);
  EXPECT_EQ(store_->Stats()->quarantined_files, 1u);
  EXPECT_EQ(store_->GetDocument(Key("a"))->state, DocumentState::kReady);
  ASSERT_OK(Save(1, "again"));
  EXPECT_EQ(store_->Stats()->quarantined_files, 0u);
  EXPECT_EQ(*ReadAll(*store_, *store_->GetTrainingJob(1)->checkpoint), "again");
}

TEST_F(TrainingJobsTest, DamagedRowOfACheckpointSpoilsThatOnly) {
  Add();
  ASSERT_OK(Save(1, "weights"));
  store_.reset();
  Sql("UPDATE files SET digest = 'x' WHERE job_id = 1");
  Open();
  EXPECT_EQ(store_->GetDocument(Key("a"))->state, DocumentState::kReady);
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(*store_, *store_->GetTrainingJob(1)->checkpoint).status()));
  ASSERT_OK(store_->UpdateTrainingJob(1, kSucceeds));
  EXPECT_EQ(Used(), OnDisk());
}

TEST_F(TrainingJobsTest, DamagedJobIsDroppedAtTheStartWithItsCheckpoint) {
  const uint64_t without = Used();
  for (const char* damage : {"state = 2", "request = '*'", "checksum = 1", "document_id = 77"}) {
    const int64_t damaged = Add();
    const int64_t whole = Add();
    ASSERT_OK(Save(damaged, "weights"));
    store_.reset();
    Sql(absl::StrCat("UPDATE training_jobs SET ", damage, " WHERE id = ", damaged));
    Open();
    EXPECT_EQ(store_->Stats()->dropped_jobs, 1u) << damage;
    EXPECT_EQ(ReasonOf(store_->GetTrainingJob(damaged).status()), reason::kJobNotFound);
    EXPECT_EQ(Listed("a"), (Ids{whole})) << damage;
    EXPECT_EQ(*store_->CountOpenTrainingJobs(), 1u);
    EXPECT_EQ(store_->GetDocument(Key("a"))->state, DocumentState::kReady);
    EXPECT_EQ(OnDisk(), without);
    EXPECT_EQ(Used(), without);
    Open();
    EXPECT_EQ(store_->Stats()->dropped_jobs, 0u);
    ASSERT_OK(store_->UpdateTrainingJob(whole, kSucceeds));
    store_.reset();
    Sql("DELETE FROM training_jobs");
    Open();
  }
}

TEST_F(TrainingJobsTest, AJobDamagedWhileTheStoreIsOpenIsLeftOut) {
  Add();
  Add();
  Sql("UPDATE training_jobs SET state = 2 WHERE id = 1");
  EXPECT_FALSE(store_->GetTrainingJob(1).ok());
  EXPECT_EQ(ReasonOf(Save(1, "x")), reason::kJobNotFound);
  EXPECT_EQ(Listed("a"), (Ids{2}));
  EXPECT_EQ((*Claim())->id, 2);
}

}  // namespace
}  // namespace docmem::store
