#include "server/listener.h"

#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/services/health_service.h"

namespace docmem::server {
namespace {

class ListenerTest : public testing::Test {
 protected:
  Lifecycle lifecycle_;
  HealthService health_{&lifecycle_, [] { return true; }};
};

TEST_F(ListenerTest, AFreePortIsBoundAndNeverShared) {
  auto first = Listen({.address = "127.0.0.1:0", .services = {&health_}});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_NE(first->address, "127.0.0.1:0");
  const auto second = Listen({.address = first->address, .services = {&health_}});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(first->address), absl::string_view::npos);
  first->server->Shutdown();
}

// The core silently ignores keys that it doesn't know, so they are compared by their spelling.
TEST(KeepaliveKeys, AreThoseOfTheCore) {
  EXPECT_STREQ(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
               "grpc.http2.min_ping_interval_without_data_ms");
  EXPECT_STREQ(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, "grpc.keepalive_permit_without_calls");
  EXPECT_STREQ(GRPC_ARG_KEEPALIVE_TIME_MS, "grpc.keepalive_time_ms");
  EXPECT_STREQ(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, "grpc.keepalive_timeout_ms");
  EXPECT_STREQ(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, "grpc.http2.max_pings_without_data");
  EXPECT_STREQ(GRPC_ARG_ALLOW_REUSEPORT, "grpc.so_reuseport");
}

}  // namespace
}  // namespace docmem::server
