#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/errors/error.h"
#include "server/services/testing.h"

namespace docmem::server {
namespace {

class RefusingAuthenticator : public Authenticator {
 public:
  absl::StatusOr<Principal> Authenticate(const Credentials&) const override {
    return Error(absl::StatusCode::kUnauthenticated, reason::kCredentialsMissing, "who?");
  }
};

class QueryingAuthenticator : public Authenticator {
 public:
  absl::StatusOr<Principal> Authenticate(const Credentials&) const override {
    return Principal{"reader", Role::kQuery, AllowedCollections::All()};
  }
};

// Nothing is behind the services here, so a handler that did anything before the guard would crash.
TEST(GuardWalk, EveryMethodRefusesStrangersFirst) {
  TestServer server(std::make_unique<RefusingAuthenticator>());
  for (const Method& method : AllMethods()) {
    const grpc::Status status = CallWithEmptyMessage(server.channel, std::string(method.path));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method.path;
    EXPECT_EQ(ReasonOf(status), "CREDENTIALS_MISSING") << method.path;
  }
}

TEST(GuardWalk, EveryMethodAboveTheCallersRoleIsForbidden) {
  TestServer server(std::make_unique<QueryingAuthenticator>());
  for (const Method& method : AllMethods()) {
    const grpc::Status status = CallWithEmptyMessage(server.channel, std::string(method.path));
    EXPECT_EQ(status.error_code() == grpc::StatusCode::PERMISSION_DENIED,
              method.role != Role::kQuery)
        << method.path;
  }
}

TEST(GuardWalk, WhileLoadingEveryMethodAsksToTryAgainButStatusAndReflection) {
  TestServer server;
  for (const Method& method : AllMethods()) {
    const grpc::Status status = CallWithEmptyMessage(server.channel, std::string(method.path));
    if (method.availability == Availability::kAlways) {
      EXPECT_TRUE(status.ok()) << method.path << status.error_message();
    } else {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << method.path;
      EXPECT_EQ(ReasonOf(status), "STARTING") << method.path;
    }
  }
}

TEST(GuardWalk, WhileDrainingNewWorkIsRefused) {
  TestServer server;
  server.Serve();
  server.lifecycle.SetDraining(true);
  for (const Method& method : AllMethods()) {
    if (method.availability >= Availability::kDraining) continue;
    const grpc::Status status = CallWithEmptyMessage(server.channel, std::string(method.path));
    EXPECT_EQ(ReasonOf(status), "DRAINING") << method.path;
  }
}

TEST(GuardWalk, InRecoveryModeWhatNeedsTheModelIsRefused) {
  TestServer server;
  server.Serve();
  server.lifecycle.SetPhase(Phase::kRecovery);
  for (const Method& method : AllMethods()) {
    const grpc::Status status = CallWithEmptyMessage(server.channel, std::string(method.path));
    const bool needs_model = method.availability == Availability::kServing;
    EXPECT_EQ(ReasonOf(status) == "RECOVERY_MODE", needs_model) << method.path;
    EXPECT_TRUE(!needs_model || status.error_code() == grpc::StatusCode::UNAVAILABLE)
        << method.path;
  }
}

}  // namespace
}  // namespace docmem::server
