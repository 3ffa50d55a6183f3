#include "server/services/collection_service.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/services/testing.h"

namespace docmem::server {
namespace {

class CollectionServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    server_.Serve();
    stub_ = v1::CollectionService::NewStub(server_.channel);
  }

  grpc::Status Create(const v1::CreateCollectionRequest& request) {
    grpc::ClientContext context;
    return stub_->Create(&context, request, &collection_);
  }
  grpc::Status Create(const std::string& name) {
    v1::CreateCollectionRequest request;
    request.set_name(name);
    return Create(request);
  }
  grpc::Status Update(const v1::UpdateCollectionRequest& request) {
    grpc::ClientContext context;
    return stub_->Update(&context, request, &collection_);
  }
  grpc::Status Delete(const std::string& name, bool force, bool allow_missing) {
    grpc::ClientContext context;
    v1::DeleteCollectionRequest request;
    request.set_name(name);
    request.set_force(force);
    request.set_allow_missing(allow_missing);
    return stub_->Delete(&context, request, &deleted_);
  }

  TestServer server_;
  std::unique_ptr<v1::CollectionService::Stub> stub_;
  v1::Collection collection_;
  v1::DeleteCollectionResponse deleted_;
};

TEST_F(CollectionServiceTest, SettingsComeBackWithTheirDefaults) {
  v1::CreateCollectionRequest request;
  request.set_name("papers");
  request.mutable_settings()->set_default_ratio_ppm(0);
  request.mutable_settings()->mutable_limits()->set_max_documents(3);
  ASSERT_TRUE(Create(request).ok());
  EXPECT_EQ(collection_.name(), "papers");
  EXPECT_TRUE(collection_.settings().retain_text());
  EXPECT_EQ(collection_.settings().default_ratio_ppm(), 0U);
  EXPECT_EQ(collection_.settings().limits().max_documents(), 3U);
  EXPECT_EQ(collection_.settings().default_mode(), v1::MODE_UNSPECIFIED);
  EXPECT_EQ(ReasonOf(Create(request)), "COLLECTION_EXISTS");
}

TEST_F(CollectionServiceTest, AnUpdateChangesWhatItsMaskNamesAndNothingElse) {
  ASSERT_TRUE(Create("papers").ok());
  v1::UpdateCollectionRequest update;
  update.set_name("papers");
  update.mutable_settings()->set_default_mode(v1::MODE_BASE);
  update.mutable_settings()->mutable_limits()->set_max_bytes(9);
  update.mutable_settings()->mutable_limits()->set_max_documents(9);
  update.mutable_update_mask()->add_paths("default_mode");
  update.mutable_update_mask()->add_paths("limits.max_bytes");
  update.set_revision(collection_.revision());
  ASSERT_TRUE(Update(update).ok());
  EXPECT_EQ(collection_.settings().default_mode(), v1::MODE_BASE);
  EXPECT_EQ(collection_.settings().limits().max_bytes(), 9U);
  EXPECT_EQ(collection_.settings().limits().max_documents(), 0U);
  EXPECT_EQ(ReasonOf(Update(update)), "REVISION_MISMATCH");

  update.set_revision(0);
  update.clear_update_mask();
  update.mutable_update_mask()->add_paths("limits");
  update.mutable_settings()->clear_limits();
  ASSERT_TRUE(Update(update).ok());
  EXPECT_EQ(collection_.settings().limits().max_bytes(), 0U);
}

TEST_F(CollectionServiceTest, BadRequestsNameTheirField) {
  EXPECT_EQ(FieldOf(Create("")), "name");
  EXPECT_EQ(FieldOf(Create("../x")), "name");
  v1::CreateCollectionRequest create;
  create.set_name("papers");
  create.mutable_settings()->set_default_ratio_ppm(1'000'001);
  EXPECT_EQ(FieldOf(Create(create)), "settings.default_ratio_ppm");
  create.mutable_settings()->set_default_ratio_ppm(1);
  create.mutable_settings()->set_default_mode(static_cast<v1::Mode>(99));
  EXPECT_EQ(FieldOf(Create(create)), "settings.default_mode");

  v1::UpdateCollectionRequest update;
  update.set_name("default");
  EXPECT_EQ(FieldOf(Update(update)), "update_mask");
  update.mutable_update_mask()->add_paths("name");
  EXPECT_EQ(FieldOf(Update(update)), "update_mask");
}

TEST_F(CollectionServiceTest, PagesGoThroughAllCollections) {
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(Create(name).ok());
  std::string names;
  v1::ListCollectionsRequest request;
  request.set_page_size(3);
  do {
    grpc::ClientContext context;
    v1::ListCollectionsResponse page;
    ASSERT_TRUE(stub_->List(&context, request, &page).ok());
    for (const auto& collection : page.collections()) names += collection.name() + " ";
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(names, "a b c default ");
  grpc::ClientContext context;
  v1::ListCollectionsResponse page;
  request.set_page_size(1001);
  EXPECT_EQ(FieldOf(stub_->List(&context, request, &page)), "page_size");
}

TEST_F(CollectionServiceTest, DeletingWithForceForgetsTheDocuments) {
  server_.Publish("d1", {"c1"});
  EXPECT_EQ(ReasonOf(Delete("default", true, false)), "COLLECTION_PROTECTED");
  EXPECT_TRUE(server_.residency.notes().empty());
  ASSERT_TRUE(Create("papers").ok());
  ASSERT_TRUE(Delete("papers", true, false).ok());
  EXPECT_EQ(deleted_.deleted_documents(), 0U);
  EXPECT_EQ(ReasonOf(Delete("papers", false, false)), "COLLECTION_NOT_FOUND");
  EXPECT_TRUE(Delete("papers", false, true).ok());
}

}  // namespace
}  // namespace docmem::server
