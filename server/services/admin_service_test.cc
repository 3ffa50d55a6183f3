#include "server/services/admin_service.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/services/testing.h"

namespace docmem::server {
namespace {

class AdminServiceTest : public testing::Test {
 protected:
  v1::GetStatusResponse Status() {
    grpc::ClientContext context;
    v1::GetStatusResponse response;
    const grpc::Status status = stub_->GetStatus(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  v1::ListResidentResponse Residents(const v1::ListResidentRequest& request) {
    grpc::ClientContext context;
    v1::ListResidentResponse response;
    EXPECT_TRUE(stub_->ListResident(&context, request, &response).ok());
    return response;
  }

  void AddResident(store::ResidentKind kind, const std::string& document, const std::string& id) {
    ResidentMemory item;
    item.resident.key.kind = kind;
    item.resident.bytes = 64;
    item.resident.leases = 2;
    item.document = {"default", document};
    item.id = id;
    server_.residency.residents.push_back(item);
  }

  TestServer server_;
  std::unique_ptr<v1::AdminService::Stub> stub_ = v1::AdminService::NewStub(server_.channel);
};

TEST_F(AdminServiceTest, StatusShowsTheLoadBeforeThereIsAnything) {
  server_.lifecycle.SetPhase(Phase::kLoadingModel);
  server_.lifecycle.SetLoadProgress(0.25);
  const v1::GetStatusResponse status = Status();
  EXPECT_EQ(status.phase(), v1::GetStatusResponse::PHASE_LOADING_MODEL);
  EXPECT_EQ(status.load_progress(), 0.25);
  EXPECT_FALSE(status.has_model());
  EXPECT_EQ(status.tiers_size(), 0);
  EXPECT_EQ(status.limits().max_queue(), 7U);
  EXPECT_FALSE(status.version().empty());
}

TEST_F(AdminServiceTest, StatusCountsWhatIsStored) {
  server_.Serve();
  server_.model.name = "tiny";
  server_.queue = {.waiting = 1, .loading = 2, .running = 3, .building = 4};
  server_.Publish("d1", {"c1", "c2"});
  server_.PublishAdapter("d1", "a1");
  const v1::GetStatusResponse status = Status();
  EXPECT_EQ(status.phase(), v1::GetStatusResponse::PHASE_SERVING);
  EXPECT_EQ(status.model().name(), "tiny");
  EXPECT_EQ(status.documents(), 1U);
  EXPECT_EQ(status.caches(), 2U);
  EXPECT_EQ(status.adapters(), 1U);
  EXPECT_EQ(status.queue().building(), 4U);
  EXPECT_FALSE(status.generation().empty());
  ASSERT_EQ(status.tiers_size(), 2);
  EXPECT_EQ(status.tiers(0).tier(), v1::TIER_DISK);
  EXPECT_GT(status.tiers(0).used_bytes(), 0U);
  EXPECT_EQ(status.tiers(1).tier(), v1::TIER_DEVICE);
}

TEST_F(AdminServiceTest, ResidentsComeInPagesAndByKind) {
  server_.Serve();
  AddResident(store::ResidentKind::kAdapter, "d1", "a1");
  AddResident(store::ResidentKind::kCache, "d2", "c2");
  AddResident(store::ResidentKind::kCache, "d1", "c1");
  v1::ListResidentRequest request;
  request.set_page_size(2);
  v1::ListResidentResponse page = Residents(request);
  ASSERT_EQ(page.items_size(), 2);
  EXPECT_EQ(page.items(0).id(), "c1");
  EXPECT_EQ(page.items(0).leases(), 2U);
  EXPECT_EQ(page.items(1).document(), "d2");
  request.set_page_token(page.next_page_token());
  page = Residents(request);
  ASSERT_EQ(page.items_size(), 1);
  EXPECT_EQ(page.items(0).kind(), v1::ARTIFACT_KIND_ADAPTER);
  EXPECT_TRUE(page.next_page_token().empty());
  request.Clear();
  request.set_kind(v1::ARTIFACT_KIND_ADAPTER);
  EXPECT_EQ(Residents(request).items_size(), 1);
  request.set_tier(v1::TIER_DISK);
  grpc::ClientContext context;
  EXPECT_EQ(FieldOf(stub_->ListResident(&context, request, &page)), "tier");
}

TEST_F(AdminServiceTest, DrainingCanBeUndone) {
  server_.Serve();
  v1::DrainRequest request;
  v1::DrainResponse response;
  grpc::ClientContext first;
  ASSERT_TRUE(stub_->Drain(&first, request, &response).ok());
  EXPECT_TRUE(response.draining());
  EXPECT_EQ(Status().phase(), v1::GetStatusResponse::PHASE_DRAINING);
  request.set_undo(true);
  grpc::ClientContext second;
  ASSERT_TRUE(stub_->Drain(&second, request, &response).ok());
  EXPECT_FALSE(response.draining());
  EXPECT_TRUE(server_.lifecycle.ready());
}

}  // namespace
}  // namespace docmem::server
