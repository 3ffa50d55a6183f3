#include "adapter_store/registry/training_job_table.h"

#include "adapter_store/registry/artifact_tables.h"
#include "adapter_store/registry/store_totals.h"
#include "adapter_store/testing/registry_fixture.h"

namespace docmem::store {
namespace {

using store_test::RegistryConformanceTest;

class TrainingJobTableTest : public RegistryConformanceTest {
 protected:
  int64_t AddJob(int64_t document, TrainingJobState state = TrainingJobState::kQueued,
                 absl::Time updated = kNow) {
    int64_t id = 0;
    Write([&](Sql& sql) -> absl::Status {
      TrainingJobRow row{0, document, state, "request", "report", kNow, updated};
      STORE_ASSIGN_OR_RETURN(id, InsertTrainingJob(sql, row));
      return absl::OkStatus();
    });
    return id;
  }

  std::vector<int64_t> Listed(const TrainingJobRange& range) {
    std::vector<int64_t> ids;
    Read([&](Sql& sql) -> absl::Status {
      STORE_ASSIGN_OR_RETURN(const std::vector<TrainingJobRow> rows,
                             ListTrainingJobRows(sql, range));
      for (const TrainingJobRow& row : rows) ids.push_back(row.id);
      return absl::OkStatus();
    });
    return ids;
  }
};

using Ids = std::vector<int64_t>;
constexpr int64_t kAll = 1000;

TEST_P(TrainingJobTableTest, JobsKeepAllColumns) {
  const int64_t document = AddDocument(AddCollection("c"), "d");
  TrainingJobRow row{0,    document, TrainingJobState::kQueued, std::string("\0\xff want", 7), "",
                     kNow, kNow};
  Write([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(row.id, InsertTrainingJob(sql, row));
    row.state = TrainingJobState::kFailed;
    row.report = std::string("\x80\0 is", 5);
    row.updated = kNow + absl::Seconds(1);
    return UpdateTrainingJobRow(sql, row);
  });
  Open();
  Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const auto found, FindTrainingJob(sql, row.id));
    EXPECT_EQ(found->id, 1);
    EXPECT_EQ(found->document_id, document);
    EXPECT_EQ(found->state, TrainingJobState::kFailed);
    EXPECT_EQ(found->request, row.request);
    EXPECT_EQ(found->report, row.report);
    EXPECT_EQ(found->created, kNow);
    EXPECT_EQ(found->updated, row.updated);
    EXPECT_FALSE(found->damaged);
    EXPECT_FALSE(FindTrainingJob(sql, row.id + 1)->has_value());
    return absl::OkStatus();
  });
}

TEST_P(TrainingJobTableTest, AnyChangedColumnIsDamage) {
  const int64_t document = AddDocument(AddCollection("c"), "d");
  AddDocument(AddCollection("other"), "d");
  for (const char* change : {"document_id = 2", "state = 2", "request = 'AAAA'", "report = '*'",
                             "created = 5", "updated = 5", "checksum = 5"}) {
    const int64_t id = AddJob(document);
    Write([&](Sql& sql) {
      return sql.Execute(std::string("UPDATE training_jobs SET ") + change + " WHERE id = $1",
                         {id});
    });
    Read([&](Sql& sql) -> absl::Status {
      EXPECT_TRUE((*FindTrainingJob(sql, id))->damaged) << change;
      return absl::OkStatus();
    });
  }
}

TEST_P(TrainingJobTableTest, ListsNewestFirstOfADocumentOrACollection) {
  const int64_t collection = AddCollection("c");
  const int64_t first = AddDocument(collection, "first");
  const int64_t second = AddDocument(collection, "second");
  const int64_t foreign = AddDocument(AddCollection("other"), "first");
  for (const int64_t document : {first, second, first, foreign, first}) AddJob(document);
  EXPECT_EQ(Listed({.collection_id = collection, .before = kAll, .limit = 9}), (Ids{5, 3, 2, 1}));
  EXPECT_EQ(Listed({.collection_id = collection, .before = 5, .limit = 2}), (Ids{3, 2}));
  EXPECT_EQ(Listed({.document_id = first, .before = kAll, .limit = 2}), (Ids{5, 3}));
  EXPECT_EQ(Listed({.document_id = first, .before = 3, .limit = 2}), (Ids{1}));
  Ids all;
  Read([&](Sql& sql) {
    return ScanTrainingJobs(sql, [&](const TrainingJobRow& row) {
      all.push_back(row.id);
      return absl::OkStatus();
    });
  });
  EXPECT_EQ(all, (Ids{1, 2, 3, 4, 5}));
}

TEST_P(TrainingJobTableTest, IdsAreNeverUsedTwice) {
  const int64_t document = AddDocument(AddCollection("c"), "d");
  for (int64_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(AddJob(document), id);
    Write([&](Sql& sql) { return DeleteTrainingJobRow(sql, id); });
    Open();
  }
}

TEST_P(TrainingJobTableTest, OnlyTheJobsThatEndedFirstAreOld) {
  const int64_t collection = AddCollection("c");
  const int64_t document = AddDocument(collection, "d");
  const int64_t other = AddDocument(collection, "other");
  AddJob(document, TrainingJobState::kRunning);
  AddJob(document, TrainingJobState::kFailed, kNow + absl::Seconds(9));
  AddJob(document, TrainingJobState::kSucceeded, kNow);
  AddJob(document, TrainingJobState::kCancelled, kNow);
  AddJob(document, TrainingJobState::kQueued);
  AddJob(other, TrainingJobState::kFailed, kNow);
  Write([&](Sql& sql) { return DeleteOldTrainingJobRows(sql, document, 2); });
  EXPECT_EQ(Listed({.collection_id = collection, .before = kAll, .limit = 9}),
            (Ids{6, 5, 4, 2, 1}));
  Write([&](Sql& sql) { return DeleteOldTrainingJobRows(sql, document, 1); });
  EXPECT_EQ(Listed({.collection_id = collection, .before = kAll, .limit = 9}), (Ids{6, 5, 2, 1}));
}

TEST_P(TrainingJobTableTest, CheckpointsCountAndGoWithTheirJobAndJobsWithTheirDocument) {
  const int64_t document = AddDocument(AddCollection("c"), "d");
  const int64_t job = AddJob(document);
  AddJob(document);
  FileRow row{
      {11, ArtifactKind::kCheckpoint, "state", 5, "digest"}, FileRole::kCheckpoint, document};
  row.job_id = job;
  Write([&](Sql& sql) { return InsertFile(sql, row); });
  Read([&](Sql& sql) -> absl::Status {
    STORE_ASSIGN_OR_RETURN(const std::vector<FileRow> files, FilesOfJob(sql, job));
    EXPECT_EQ(files.size(), 1u);
    EXPECT_EQ(files.at(0).file.id, 11);
    EXPECT_EQ(files[0].file.kind, ArtifactKind::kCheckpoint);
    EXPECT_EQ(files[0].job_id, job);
    EXPECT_FALSE(files[0].damaged);
    EXPECT_EQ(FilesOf(sql, document)->size(), 1u);
    EXPECT_TRUE(FilesOfJob(sql, job + 1)->empty());
    EXPECT_EQ(TotalsOf(sql)->checkpoints, 1u);
    EXPECT_EQ(TotalsOf(sql)->checkpoint_bytes, 5u);
    return absl::OkStatus();
  });
  for (const char* other : {"2", "NULL"}) {
    Write([&](Sql& sql) { return sql.Execute(std::string("UPDATE files SET job_id = ") + other); });
    Read([&](Sql& sql) -> absl::Status {
      EXPECT_TRUE((*FindFile(sql, 11))->damaged) << other;
      return absl::OkStatus();
    });
  }
  Write([&](Sql& sql) { return UpdateFileRow(sql, row); });
  Write([&](Sql& sql) { return DeleteTrainingJobRow(sql, job); });
  EXPECT_EQ(Listed({.document_id = document, .before = kAll, .limit = 9}), (Ids{2}));
  Read([&](Sql& sql) -> absl::Status {
    EXPECT_TRUE(AllFileIds(sql)->empty());
    return absl::OkStatus();
  });
  Write([&](Sql& sql) { return DeleteDocumentRow(sql, document); });
  EXPECT_TRUE(Listed({.document_id = document, .before = kAll, .limit = 9}).empty());
}

INSTANTIATE_TEST_SUITE_P(All, TrainingJobTableTest, store_test::AllRegistries(),
                         [](const auto& maker) { return maker.param.name; });

}  // namespace
}  // namespace docmem::store
