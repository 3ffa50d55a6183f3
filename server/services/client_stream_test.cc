#include "server/services/client_stream.h"

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <memory>

#include "docmem/v1/adapter.grpc.pb.h"
#include "docmem/v1/document.grpc.pb.h"
#include "server/services/testing.h"

namespace docmem::server {
namespace {

class SilentClientTest : public ::testing::Test {
 protected:
  SilentClientTest() { server_.Serve(); }

  TestServer server_{MakeOpenAuthenticator(), absl::Milliseconds(50)};
  grpc::ClientContext context_;
};

TEST_F(SilentClientTest, IsCutFromAnUpload) {
  const auto stub = v1::AdapterService::NewStub(server_.channel);
  v1::Adapter adapter;
  const auto upload = stub->Upload(&context_, &adapter);
  const grpc::Status status = upload->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "SLOW_CLIENT");
  EXPECT_EQ(status.error_message(), "the client sent nothing for 50ms");
}

TEST_F(SilentClientTest, IsCutFromAnIngestion) {
  const auto stub = v1::DocumentService::NewStub(server_.channel);
  const auto ingestion = stub->Ingest(&context_);
  v1::IngestResponse response;
  EXPECT_FALSE(ingestion->Read(&response));
  const grpc::Status status = ingestion->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "SLOW_CLIENT");
}

}  // namespace
}  // namespace docmem::server
