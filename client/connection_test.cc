#include "client/connection.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "absl/time/clock.h"
#include "client/admin_client.h"
#include "client/collection_client.h"
#include "client/error.h"
#include "client/internal/retrying_channel.h"
#include "client/testing/fake_clock.h"
#include "client/testing/fake_daemon.h"

namespace docmem::client {
namespace {

using testing::FakeClock;
using testing::FakeDaemon;
using testing::HeaderOf;
using testing::Refusal;

TEST(Connection, RefusesWhatIsNoAddress) {
  for (const char* address : {"", "localhost", ":7600", "host:", "host:0", "host:65536", "host:x",
                              "::1:7600", "[::1]", "a:b:7600"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Connection::Open({.address = address}).status()))
        << address;
  }
  for (const char* address : {"localhost:1", "127.0.0.1:65535", "[::1]:7600"}) {
    EXPECT_TRUE(Connection::Open({.address = address}).ok()) << address;
  }
}

TEST(Connection, RefusesATokenThatNoHeaderCanCarry) {
  EXPECT_TRUE(absl::IsInvalidArgument(Connection::Open({.token = "a\nb"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Connection::Open({.token = "\xc3\xa4"}).status()));
}

TEST(Connection, SendsNoTokenInPlainTextBeyondThisMachineUnlessAllowed) {
  for (const char* here : {"localhost:1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1"}) {
    EXPECT_TRUE(Connection::Open({.address = here, .token = "secret"}).ok()) << here;
  }
  for (const char* there :
       {"10.0.0.1:1", "daemon.example:1", "127.evil.example:1", "[::2]:1", "[::127.0.0.1]:1"}) {
    const ConnectionOptions plain{.address = there, .token = "secret"};
    const absl::Status status = Connection::Open(plain).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << there;
    EXPECT_EQ(status.message().find("secret"), std::string::npos);
    EXPECT_TRUE(Connection::Open({.address = there}).ok()) << "without a token";
    ConnectionOptions allowed = plain;
    allowed.insecure = true;
    EXPECT_TRUE(Connection::Open(allowed).ok()) << there;
    ConnectionOptions encrypted = plain;
    encrypted.tls.emplace();
    EXPECT_TRUE(Connection::Open(encrypted).ok()) << there;
  }
}

TEST(Connection, ACertificateOfOnesOwnNeedsItsKey) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(Connection::Open({.tls = TlsOptions{.certificate = "c"}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Connection::Open({.tls = TlsOptions{.key = "k"}}).status()));
}

TEST(Connection, SendsTheTokenWithEveryCall) {
  FakeDaemon daemon;
  daemon.handlers.get_status = [](grpc::ServerContext* context, const v1::GetStatusRequest&,
                                  v1::GetStatusResponse* response) {
    response->set_version(HeaderOf(*context, "authorization").value_or("none"));
    EXPECT_FALSE(HeaderOf(*context, internal::kDocumentHeader));
    return grpc::Status::OK;
  };
  const ConnectionOptions options{.address = daemon.address(), .token = "secret"};
  EXPECT_EQ(AdminClient(*Connection::Open(options)).GetStatus()->version(), "Bearer secret");
  EXPECT_EQ(AdminClient(*Connection::Open({.address = daemon.address()})).GetStatus()->version(),
            "none");
}

TEST(Connection, AnAbsentDaemonIsUnavailableAfterAFewTries) {
  std::string address;
  {
    const FakeDaemon daemon;
    address = daemon.address();
  }
  const auto clock = std::make_shared<FakeClock>();
  AdminClient client(*Connection::Open({.address = address, .clock = clock}));
  const absl::Status status = client.GetStatus().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find(address), std::string::npos);
  EXPECT_EQ(DetailOf(status).reason, "");
  EXPECT_EQ(clock->sleeps().size(), 4U);
}

TEST(Connection, ACallThatMustNotComeTwiceWaitsForItsConnection) {
  std::string address;
  {
    const FakeDaemon daemon;
    address = daemon.address();
  }
  std::optional<FakeDaemon> late;
  std::jthread start([&] {
    absl::SleepFor(absl::Milliseconds(300));
    late.emplace(address);
  });
  CollectionClient client(*Connection::Open({.address = address}));
  v1::CreateCollectionRequest request;
  request.set_name("c");
  const absl::Status status = client.Create(request).status();
  start.join();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;  // what it says to every call
}

TEST(Connection, TheDeadlineBoundsACallThatGetsNoAnswer) {
  FakeDaemon daemon;
  daemon.handlers.get_status = [](grpc::ServerContext* context, const v1::GetStatusRequest&,
                                  v1::GetStatusResponse*) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::OK;
  };
  AdminClient client(*Connection::Open({.address = daemon.address()}));
  const absl::Status status = client.GetStatus({.timeout = absl::Milliseconds(50)}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
}

TEST(Connection, DetailsOfAnErrorReachTheCaller) {
  FakeDaemon daemon;
  daemon.handlers.drain = [](grpc::ServerContext*, const v1::DrainRequest&, v1::DrainResponse*) {
    return ToStatus(Refusal{.reason = "INVALID_FIELD",
                            .message = "undo: no",
                            .field = "undo",
                            .retry_delay = absl::Milliseconds(2500)});
  };
  AdminClient client(*Connection::Open({.address = daemon.address()}));
  const absl::Status status = client.Drain({}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "undo: no");
  const ErrorDetail detail = DetailOf(status);
  EXPECT_EQ(detail.reason, "INVALID_FIELD");
  EXPECT_EQ(detail.field, "undo");
  EXPECT_EQ(detail.retry_delay, absl::Milliseconds(2500));
}

TEST(Connection, AnotherServersErrorsAreNotOurs) {
  const FakeDaemon daemon;
  AdminClient client(*Connection::Open({.address = daemon.address()}));
  const absl::Status status = client.GetStatus().status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(DetailOf(status).reason, "");
}

TEST(DocumentHeader, NamesOnlyWhatCanBeADocument) {
  EXPECT_EQ(internal::DocumentHeader("", "d1"), "default/d1");
  EXPECT_EQ(internal::DocumentHeader("law", "a.b-c_9"), "law/a.b-c_9");
  for (const std::string& id :
       {std::string(), std::string(".hidden"), std::string("a/b"), std::string("a\nb"),
        std::string("\xc3\xa4"), std::string("a b"), std::string(129, 'a')}) {
    EXPECT_EQ(internal::DocumentHeader("", id), "") << id;
    if (id.empty()) continue;
    EXPECT_EQ(internal::DocumentHeader(id, "d1"), "") << id;
  }
}

}  // namespace
}  // namespace docmem::client
