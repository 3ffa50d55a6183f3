// Several stores, as of several replicas, on one registry and one shared place.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/errors.h"
#include "adapter_store/files/object_store.h"
#include "adapter_store/registry/registry.h"
#include "adapter_store/testing/faulty_object_store.h"
#include "adapter_store/testing/store_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::FaultyObjectStore;
using store_test::Key;
using store_test::SpecOf;
using store_test::TemporaryFolder;
using ::testing::HasSubstr;

class SharedStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    objects_ = std::make_shared<FaultyObjectStore>(place_.path());
    registry_ = *OpenSqliteRegistry(registry_folder_.path() + "/registry.db");
    one_ = Open(one_folder_);
    other_ = Open(other_folder_);
  }

  absl::StatusOr<std::unique_ptr<AdapterStore>> TryOpen(const TemporaryFolder& folder) {
    AdapterStoreOptions options;
    options.folder = folder.path();
    options.clock = [this] { return now_; };
    options.registry = registry_;
    options.objects = objects_;
    return AdapterStore::Open(std::move(options));
  }

  std::unique_ptr<AdapterStore> Open(const TemporaryFolder& folder) {
    auto opened = TryOpen(folder);
    EXPECT_OK(opened);
    return opened.ok() ? *std::move(opened) : nullptr;
  }

  absl::Status Publish(AdapterStore& store, const std::string& id, const std::string& text) {
    const auto begun = store.BeginDocument(Key(id), SpecOf(text), 0);
    if (!begun.ok()) return begun.status();
    DocumentPublication publication;
    publication.key = Key(id);
    publication.row = begun->row;
    publication.spec = SpecOf(text);
    publication.text = text;
    publication.document_tokens = 1;
    return store.PublishDocument(publication).status();
  }

  size_t Objects() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.path())) {
      count += entry.is_regular_file() ? 1u : 0u;
    }
    return count - 1;  // without the identity
  }

  TemporaryFolder place_, registry_folder_, one_folder_, other_folder_;
  absl::Time now_ = absl::Now();
  std::shared_ptr<FaultyObjectStore> objects_;
  std::shared_ptr<Registry> registry_;
  std::unique_ptr<AdapterStore> one_, other_;
};

TEST_F(SharedStoreTest, WhatOnePublishesTheOtherReadsAndDeletes) {
  ASSERT_OK(Publish(*one_, "d", "a text"));
  EXPECT_EQ(*other_->ReadText(Key("d")), "a text");
  ASSERT_OK(other_->DeleteDocument(Key("d"), 0));
  EXPECT_TRUE(absl::IsNotFound(one_->ReadText(Key("d")).status()));
  EXPECT_EQ(Objects(), 0u);
}

TEST_F(SharedStoreTest, WhatIsBeingPublishedIsNoGarbageToOthers) {
  int calls = 0;
  objects_->on_put = [&](const std::string&) {
    ++calls;
    EXPECT_OK(other_->CollectGarbage());
    other_.reset();
    other_ = Open(other_folder_);
  };
  ASSERT_OK(Publish(*one_, "d", "a text"));
  objects_->on_put = nullptr;
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(*other_->ReadText(Key("d")), "a text");
}

TEST_F(SharedStoreTest, APublicationThatFailsLeavesNothing) {
  objects_->put = absl::UnavailableError("down");
  const absl::Status status = Publish(*one_, "d", "a text");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(ReasonOf(status), reason::kArtifactsUnavailable);
  objects_->put = absl::OkStatus();
  EXPECT_EQ(Objects(), 0u);
  EXPECT_EQ(one_->Stats()->used_bytes, 0u);
}

TEST_F(SharedStoreTest, WhatCannotBeDeletedNowIsDeletedLater) {
  ASSERT_OK(Publish(*one_, "d", "a text"));
  objects_->remove = absl::UnavailableError("down");
  ASSERT_OK(one_->DeleteDocument(Key("d"), 0));
  EXPECT_EQ(Objects(), 1u);
  objects_->remove = absl::OkStatus();
  ASSERT_OK(one_->CollectGarbage());
  EXPECT_EQ(Objects(), 0u);
}

TEST_F(SharedStoreTest, AReplicaThatIsGoneForGoodLeavesNoObjects) {
  objects_->put = absl::UnavailableError("down");
  objects_->remove = absl::UnavailableError("down");
  EXPECT_FALSE(Publish(*one_, "d", "a text").ok());
  objects_->put = objects_->remove = absl::OkStatus();
  one_.reset();
  // As if the answer had been lost behind the object's birth.
  std::filesystem::create_directories(place_.path() + "/artifacts/001");
  std::ofstream(place_.path() + "/artifacts/001/0000000000000001-" + std::string(32, 'a') + ".text")
      << "x";
  ASSERT_OK(other_->CollectGarbage());
  EXPECT_EQ(Objects(), 1u);  // it may come back
  now_ += absl::Hours(4);
  ASSERT_OK(other_->CollectGarbage());
  EXPECT_EQ(Objects(), 0u);
}

TEST_F(SharedStoreTest, APlaceThatIsDownSpoilsNoDocument) {
  ASSERT_OK(Publish(*one_, "d", "a text"));
  for (const absl::Status& failure :
       {absl::UnavailableError("down"), absl::PermissionDeniedError("the key was revoked"),
        absl::FailedPreconditionError("no such bucket")}) {
    objects_->get = failure;
    const absl::Status status = other_->ReadText(Key("d")).status();
    EXPECT_EQ(ReasonOf(status), reason::kArtifactsUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(failure.message())));
  }
  objects_->get = absl::OkStatus();
  EXPECT_EQ(*other_->ReadText(Key("d")), "a text");
}

TEST_F(SharedStoreTest, AVolumeThatIsNotMountedSpoilsNoDocument) {
  ASSERT_OK(Publish(*one_, "d", "a text"));
  const TemporaryFolder away;
  const auto move = [](const std::string& from, const std::string& to) {
    for (const char* name : {"/artifacts", "/identity"}) {
      std::filesystem::rename(from + name, to + name);
    }
  };
  move(place_.path(), away.path());
  const absl::Status status = other_->ReadText(Key("d")).status();
  EXPECT_EQ(ReasonOf(status), reason::kArtifactsUnavailable) << status;
  const absl::Status refused = TryOpen(TemporaryFolder()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("mounted"));
  move(away.path(), place_.path());
  EXPECT_EQ(*other_->ReadText(Key("d")), "a text");
}

TEST_F(SharedStoreTest, AnObjectThatIsGoneQuarantinesItsDocument) {
  ASSERT_OK(Publish(*one_, "d", "a text"));
  ASSERT_OK(Publish(*one_, "e", "another"));
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(place_.path() + "/artifacts")) {
    if (absl::StrContains(entry.path().filename().string(), "01-")) {
      std::filesystem::remove(entry.path());
      break;
    }
  }
  EXPECT_TRUE(absl::IsDataLoss(other_->ReadText(Key("d")).status()));
  EXPECT_TRUE(absl::IsDataLoss(one_->ReadText(Key("d")).status()));
  EXPECT_EQ(*other_->ReadText(Key("e")), "another");
}

TEST_F(SharedStoreTest, RegistryAndPlaceBelongTogether) {
  ASSERT_OK(Publish(*one_, "d", "a text"));
  const TemporaryFolder foreign;
  objects_ = std::make_shared<FaultyObjectStore>(foreign.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(TryOpen(TemporaryFolder()).status()));

  objects_ = std::make_shared<FaultyObjectStore>(place_.path());
  const TemporaryFolder folder;
  registry_ = *OpenSqliteRegistry(folder.path() + "/registry.db");
  const absl::Status status = TryOpen(TemporaryFolder()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("another registry"));
}

TEST_F(SharedStoreTest, ADocumentWhoseBuilderIsGoneCanBeIngestedAgain) {
  ASSERT_OK(one_->BeginDocument(Key("d"), SpecOf("a text"), 0));
  one_.reset();
  ASSERT_OK(other_->CollectGarbage());
  EXPECT_EQ(other_->GetDocument(Key("d"))->state, DocumentState::kBuilding);
  now_ += absl::Hours(3);
  ASSERT_OK(other_->CollectGarbage());
  EXPECT_EQ(other_->GetDocument(Key("d"))->state, DocumentState::kFailed);
  EXPECT_OK(Publish(*other_, "d", "a text"));
}

TEST_F(SharedStoreTest, ATrainingIsClaimedByOneReplicaAtATime) {
  ASSERT_OK(Publish(*one_, "d", "a text"));
  for (int i = 0; i < 2; ++i) ASSERT_OK(one_->AddTrainingJob(Key("d"), "", ""));
  constexpr absl::Duration kTime = absl::Minutes(1);
  EXPECT_EQ((*one_->ClaimTrainingJob(kTime))->id, 1);
  EXPECT_EQ((*other_->ClaimTrainingJob(kTime))->id, 2);
  EXPECT_FALSE(Open(TemporaryFolder())->ClaimTrainingJob(kTime)->has_value());

  EXPECT_TRUE(absl::IsAborted(other_->KeepTrainingJob(1, kTime, "")));
  EXPECT_TRUE(
      absl::IsAborted(other_->UpdateTrainingJob(1, {.state = TrainingJobState::kFailed}).status()));
  EXPECT_TRUE(
      absl::IsAborted(other_->PublishTrainingCheckpoint(1, store_test::FileOf("state", "x"), "")));
  ASSERT_OK(one_->KeepTrainingJob(1, kTime, "halfway"));
  EXPECT_EQ(other_->GetTrainingJob(1)->report, "halfway");

  // The first one dies: its claim ends, and it may not go on when it comes back.
  now_ += absl::Seconds(90);
  ASSERT_OK(other_->KeepTrainingJob(2, kTime, ""));
  EXPECT_EQ((*other_->ClaimTrainingJob(kTime))->id, 1);
  EXPECT_TRUE(absl::IsAborted(one_->KeepTrainingJob(1, kTime, "")));

  // Anyone may cancel.
  ASSERT_OK(one_->UpdateTrainingJob(1, {.state = TrainingJobState::kCancelled}));
  EXPECT_EQ(ReasonOf(other_->KeepTrainingJob(1, kTime, "")), reason::kJobFinished);
}

TEST_F(SharedStoreTest, OnlyTheFirstReplicaMakesAPlaceItsRegistrys) {
  // Nothing is stored yet, and a third one looks at a volume that isn't mounted.
  const TemporaryFolder elsewhere;
  objects_ = std::make_shared<FaultyObjectStore>(elsewhere.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(TryOpen(TemporaryFolder()).status()));
  EXPECT_FALSE(std::filesystem::exists(elsewhere.path() + "/identity"));
}

TEST_F(SharedStoreTest, APublicationThatWasGivenUpFails) {
  objects_->on_put = [&](const std::string&) {
    now_ += absl::Hours(4);
    EXPECT_OK(other_->CollectGarbage());
  };
  EXPECT_TRUE(absl::IsAborted(Publish(*one_, "d", "a text")));
  objects_->on_put = nullptr;
  EXPECT_EQ(one_->GetDocument(Key("d"))->state, DocumentState::kFailed);
  EXPECT_EQ(Objects(), 0u);
}

TEST_F(SharedStoreTest, StrayCopiesCostNoObjects) {
  ASSERT_OK(Publish(*one_, "d", "a text"));
  // A copy with an id that this registry gives out next.
  const std::string stray = other_folder_.path() + "/artifacts/02/0000000000000002.text";
  std::ofstream(stray) << "of another registry";
  std::filesystem::last_write_time(
      stray, std::filesystem::file_time_type::clock::now() - std::chrono::hours(3));
  std::filesystem::create_directories(place_.path() + "/artifacts/002");
  const std::string object =
      place_.path() + "/artifacts/002/0000000000000002-" + std::string(32, 'a') + ".text";
  std::ofstream(object) << "x";
  ASSERT_OK(other_->CollectGarbage());
  EXPECT_FALSE(std::filesystem::exists(stray));
  EXPECT_TRUE(std::filesystem::exists(object));
}

TEST_F(SharedStoreTest, ASharedPlaceNeedsASharedRegistry) {
  AdapterStoreOptions options;
  const TemporaryFolder folder;
  options.folder = folder.path();
  options.artifacts = place_.path();
  EXPECT_TRUE(absl::IsInvalidArgument(AdapterStore::Open(std::move(options)).status()));
}

}  // namespace
}  // namespace docmem::store
