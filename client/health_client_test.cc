#include "client/health_client.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "docmem/v1/admin.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace docmem::client {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// A daemon that works but isn't ready.
class LoadingDaemon final : public grpc::health::v1::Health::Service {
 public:
  grpc::Status Check(grpc::ServerContext*, const HealthCheckRequest* request,
                     HealthCheckResponse* response) override {
    if (request->service().empty()) {
      response->set_status(HealthCheckResponse::NOT_SERVING);
    } else if (request->service() == "docmem.liveness") {
      response->set_status(HealthCheckResponse::SERVING);
    } else {
      return {grpc::StatusCode::NOT_FOUND, "unknown service"};
    }
    return grpc::Status::OK;
  }
};

class HealthClientTest : public testing::Test {
 protected:
  HealthClientTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&daemon_);
    server_ = builder.BuildAndStart();
    auto connection = Connection::Open({.address = "127.0.0.1:" + std::to_string(port)});
    client_ = std::make_unique<HealthClient>(connection.value());
  }

  LoadingDaemon daemon_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HealthClient> client_;
};

TEST_F(HealthClientTest, TellsReadinessFromLiveness) {
  EXPECT_FALSE(client_->IsServing("").value());
  EXPECT_TRUE(client_->IsServing("docmem.liveness").value());
}

TEST_F(HealthClientTest, RefusesANameTheDaemonDoesNotKnow) {
  EXPECT_EQ(client_->IsServing("docmem.nothing").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(HealthClientTest, GivesUpOnADaemonThatIsGone) {
  server_->Shutdown();
  EXPECT_EQ(client_->IsServing("", {.timeout = absl::Milliseconds(200)}).status().code(),
            absl::StatusCode::kUnavailable);
}

// What asks the API's address hears where the health service is.
TEST(HealthClientOfTheApiTest, NamesTheOtherAddress) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  v1::AdminService::Service api;
  builder.RegisterService(&api);
  const auto server = builder.BuildAndStart();
  auto connection = Connection::Open({.address = "127.0.0.1:" + std::to_string(port)});
  const absl::Status said = HealthClient(connection.value()).IsServing("").status();
  EXPECT_EQ(said.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(said.message().find("--health-listen"), std::string::npos) << said;
}

}  // namespace
}  // namespace docmem::client
