#include "server/services/health_service.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace docmem::server {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class HealthServiceTest : public testing::Test {
 protected:
  HealthServiceTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = Health::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                grpc::InsecureChannelCredentials()));
  }
  ~HealthServiceTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  static HealthCheckRequest RequestOf(const std::string& name) {
    HealthCheckRequest request;
    request.set_service(name);
    return request;
  }

  HealthCheckResponse::ServingStatus Check(const std::string& name) {
    grpc::ClientContext context;
    HealthCheckResponse response;
    const grpc::Status status = stub_->Check(&context, RequestOf(name), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.status();
  }

  Lifecycle lifecycle_;
  std::atomic<bool> alive_{true};
  HealthService service_{&lifecycle_, [this] { return alive_.load(); }};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthServiceTest, ReadinessFollowsLoadingDrainingAndStopping) {
  EXPECT_EQ(Check(""), HealthCheckResponse::NOT_SERVING);
  lifecycle_.SetPhase(Phase::kServing);
  EXPECT_EQ(Check(""), HealthCheckResponse::SERVING);
  EXPECT_EQ(Check("docmem.v1.QueryService"), HealthCheckResponse::SERVING);
  lifecycle_.SetDraining(true);
  EXPECT_EQ(Check("docmem.v1.QueryService"), HealthCheckResponse::NOT_SERVING);
  lifecycle_.SetDraining(false);
  EXPECT_EQ(Check(""), HealthCheckResponse::SERVING);
  lifecycle_.SetPhase(Phase::kStopping);
  EXPECT_EQ(Check(""), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, LivenessHoldsWhileLoadingAndStoppingAndFailsWithTheWatchdog) {
  EXPECT_EQ(Check(kLivenessName), HealthCheckResponse::SERVING);
  lifecycle_.SetPhase(Phase::kStopping);
  EXPECT_EQ(Check(kLivenessName), HealthCheckResponse::SERVING);
  alive_ = false;
  EXPECT_EQ(Check(kLivenessName), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, AnUnknownNameIsNotFound) {
  grpc::ClientContext context;
  HealthCheckResponse response;
  EXPECT_EQ(stub_->Check(&context, RequestOf("other"), &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(HealthServiceTest, AWatchTellsEveryChange) {
  grpc::ClientContext context;
  auto reader = stub_->Watch(&context, RequestOf(""));
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  lifecycle_.SetPhase(Phase::kServing);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  context.TryCancel();
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthServiceTest, AtTheCloseAWatchTellsTheLastChangeAndEnds) {
  lifecycle_.SetPhase(Phase::kServing);
  grpc::ClientContext context;
  auto reader = stub_->Watch(&context, RequestOf(""));
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  lifecycle_.SetPhase(Phase::kStopping);
  service_.Close();
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, TooManyWatchersAreRefusedSoThatChecksAreAnswered) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<HealthCheckResponse>>> readers;
  HealthCheckResponse response;
  for (int i = 0; i < 16; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(stub_->Watch(contexts.back().get(), RequestOf("")));
    ASSERT_TRUE(readers.back()->Read(&response));
  }
  grpc::ClientContext context;
  auto refused = stub_->Watch(&context, RequestOf(""));
  EXPECT_FALSE(refused->Read(&response));
  EXPECT_EQ(refused->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Check(""), HealthCheckResponse::NOT_SERVING);
  for (auto& one : contexts) one->TryCancel();
  for (auto& reader : readers) {
    while (reader->Read(&response)) {
    }
    reader->Finish();
  }
}

}  // namespace
}  // namespace docmem::server
