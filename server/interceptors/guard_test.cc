#include "server/interceptors/guard.h"

#include <gmock/gmock.h>
#include <grpcpp/test/server_context_test_spouse.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

// Knows `Bearer query`, `Bearer write`, `Bearer admin`, and `Bearer law`: an admin of one
// collection.
class FakeAuthenticator : public Authenticator {
 public:
  absl::StatusOr<Principal> Authenticate(const Credentials& credentials) const override {
    const std::string_view header = credentials.authorization;
    const AllowedCollections all = AllowedCollections::All();
    if (header == "Bearer query") return Principal{"reader", Role::kQuery, all};
    if (header == "Bearer write") return Principal{"writer", Role::kWrite, all};
    if (header == "Bearer admin") return Principal{"admin", Role::kAdmin, all};
    if (header == "Bearer law") {
      return Principal{"lawyer", Role::kAdmin, AllowedCollections({"law"})};
    }
    return Error(absl::StatusCode::kUnauthenticated, reason::kCredentialsInvalid, "who?");
  }
};

class GuardTest : public testing::Test {
 protected:
  // Until when.
  absl::StatusOr<absl::Time> Admit(const Method& method, const std::string& authorization) {
    grpc::ServerContext context;
    grpc::testing::ServerContextTestSpouse spouse(&context);
    if (!authorization.empty()) spouse.AddClientMetadata("authorization", authorization);
    const absl::StatusOr<Principal> caller = guard_.Identify(context);
    if (!caller.ok()) return caller.status();
    return guard_.Admit(*caller, context.deadline(), method);
  }

  FakeAuthenticator authenticator_;
  Lifecycle lifecycle_;
  Guard guard_{&authenticator_, &lifecycle_};
};

TEST_F(GuardTest, CredentialsAndRolesAreCheckedBeforeTheStateOfTheDaemon) {
  EXPECT_EQ(Admit(method::kAsk, "").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Admit(method::kGetText, "Bearer query").status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Admit(method::kAsk, "Bearer query").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(GuardTest, WhatActsOnTheWholeDaemonNeedsTheRightToAllCollections) {
  EXPECT_TRUE(Admit(method::kGetStatus, "Bearer law").ok());
  lifecycle_.SetPhase(Phase::kServing);
  EXPECT_TRUE(Admit(method::kDrain, "Bearer admin").ok());
  const absl::Status refused = Admit(method::kDrain, "Bearer law").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(store::ReasonOf(refused), "NOT_PERMITTED");
}

TEST_F(GuardTest, ASecondHeaderIsRefusedWhateverTheFirstIs) {
  grpc::ServerContext context;
  grpc::testing::ServerContextTestSpouse spouse(&context);
  spouse.AddClientMetadata("authorization", "Bearer query");
  spouse.AddClientMetadata("authorization", "Bearer admin");
  const absl::Status refused = guard_.Identify(context).status();
  EXPECT_EQ(store::ReasonOf(refused), "CREDENTIALS_INVALID");
}

TEST_F(GuardTest, WhileLoadingOnlyStatusAnswers) {
  EXPECT_TRUE(Admit(method::kGetStatus, "Bearer query").ok());
  EXPECT_EQ(store::ReasonOf(Admit(method::kAsk, "Bearer query").status()), "STARTING");
  EXPECT_EQ(store::ReasonOf(Admit(method::kAbort, "Bearer query").status()), "STARTING");
}

TEST_F(GuardTest, WhileDrainingOpenWorkCanStillBeEndedAndLookedAt) {
  lifecycle_.SetPhase(Phase::kServing);
  EXPECT_TRUE(Admit(method::kAsk, "Bearer query").ok());
  lifecycle_.SetDraining(true);
  EXPECT_EQ(store::ReasonOf(Admit(method::kAsk, "Bearer query").status()), "DRAINING");
  EXPECT_TRUE(Admit(method::kAbort, "Bearer query").ok());
  EXPECT_TRUE(Admit(method::kGetStatus, "Bearer query").ok());
  lifecycle_.SetDraining(false);
  EXPECT_TRUE(Admit(method::kAsk, "Bearer query").ok());
  lifecycle_.SetPhase(Phase::kStopping);
  EXPECT_FALSE(Admit(method::kAsk, "Bearer query").ok());
  EXPECT_TRUE(Admit(method::kAbort, "Bearer query").ok());
}

TEST_F(GuardTest, RecoveryModeListsAndDeletesUntilItStops) {
  lifecycle_.SetPhase(Phase::kRecovery);
  EXPECT_FALSE(lifecycle_.ready());
  EXPECT_TRUE(Admit(method::kDocumentList, "Bearer query").ok());
  EXPECT_TRUE(Admit(method::kDocumentDelete, "Bearer write").ok());
  EXPECT_TRUE(Admit(method::kAbort, "Bearer query").ok());
  const absl::Status refused = Admit(method::kAsk, "Bearer query").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store::ReasonOf(refused), "RECOVERY_MODE");
  lifecycle_.SetPhase(Phase::kStopping);
  EXPECT_EQ(store::ReasonOf(Admit(method::kDocumentDelete, "Bearer write").status()), "DRAINING");
  EXPECT_EQ(store::ReasonOf(Admit(method::kAsk, "Bearer query").status()), "RECOVERY_MODE");
}

TEST_F(GuardTest, AStopBeforeTheDaemonHasLoadedLetsNothingThrough) {
  lifecycle_.SetPhase(Phase::kStopping);
  EXPECT_EQ(store::ReasonOf(Admit(method::kAbort, "Bearer query").status()), "STARTING");
}

TEST_F(GuardTest, ACallWithoutDeadlineGetsItsMethodsDefault) {
  lifecycle_.SetPhase(Phase::kServing);
  const absl::Time now = absl::Now();
  EXPECT_NEAR(absl::ToDoubleSeconds(*Admit(method::kAsk, "Bearer query") - now), 120, 2);
  EXPECT_EQ(*Admit(method::kTrainingWatch, "Bearer query"), absl::InfiniteFuture());
}

TEST(OpenAuthenticator, EverybodyHasAllRights) {
  const auto principal = MakeOpenAuthenticator()->Authenticate({});
  EXPECT_TRUE(principal->collections.all());
  EXPECT_EQ(principal->role, Role::kAdmin);
  EXPECT_EQ(principal->name, "anonymous");
}

}  // namespace
}  // namespace docmem::server
