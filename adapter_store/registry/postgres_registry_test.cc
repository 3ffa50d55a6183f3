// What only a registry on a server can meet: sessions that break. The contract that it shares with
// SQLite is registry_test.cc.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string_view>
#include <thread>

#include "adapter_store/errors.h"
#include "adapter_store/registry/row_codec.h"
#include "adapter_store/testing/registry_fixture.h"

namespace docmem::store {
namespace {

using store_test::PostgresOf;
using store_test::PostgresScript;
using store_test::TemporaryFolder;
using store_test::TestPostgres;

int Listen(uint16_t* port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener, 16), 0);
  EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  *port = ntohs(address.sin_port);
  return listener;
}

int Connect(uint16_t port) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return connection;
}

/// Stands between a client and the server, and may cut a session around its COMMIT.
class Relay {
 public:
  enum class Cut { kNever, kBeforeCommit, kBehindCommit };

  explicit Relay(uint16_t server) : server_(server), listener_(Listen(&port_)) {
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~Relay() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : sessions_) thread.join();
    close(listener_);
  }

  uint16_t port() const { return port_; }
  /// For the next COMMIT alone.
  void CutNext(Cut cut) { cut_ = cut; }
  int cuts() const { return cuts_; }

 private:
  void Accept() {
    for (;;) {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      sessions_.emplace_back([this, client] { Serve(client, Connect(server_)); });
    }
  }

  void Serve(int client, int server) {
    std::array<pollfd, 2> ends = {{{client, POLLIN, 0}, {server, POLLIN, 0}}};
    bool lives = true;
    bool silent = false;  // the server's answer is swallowed, then the session cut
    while (lives && poll(ends.data(), ends.size(), -1) > 0) {
      std::array<char, 65536> bytes;
      if (ends[0].revents != 0) {
        const ssize_t size = read(client, bytes.data(), bytes.size());
        const std::string_view sent(bytes.data(), size > 0 ? static_cast<size_t>(size) : 0);
        if (sent.find("COMMIT") != std::string_view::npos && cut_ != Cut::kNever) {
          lives = cut_.exchange(Cut::kNever) == Cut::kBehindCommit;
          silent = lives;
          ++cuts_;
        }
        lives = lives && size > 0 && write(server, bytes.data(), sent.size()) > 0;
      }
      if (lives && ends[1].revents != 0) {
        const ssize_t size = read(server, bytes.data(), bytes.size());
        lives = size > 0 && !silent && write(client, bytes.data(), static_cast<size_t>(size)) > 0;
      }
    }
    close(client);
    close(server);
  }

  const uint16_t server_;
  uint16_t port_ = 0;
  const int listener_;
  std::atomic<Cut> cut_{Cut::kNever};
  std::atomic<int> cuts_{0};
  std::thread acceptor_;
  std::vector<std::thread> sessions_;  // of the acceptor, then of the destructor
};

class PostgresRegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TestPostgres() == nullptr) GTEST_SKIP() << "tests/with_postgres.py starts a server";
    where_ = PostgresOf(folder_.path());
  }

  std::unique_ptr<Registry> Open(const std::string& where) {
    auto opened = OpenPostgresRegistry(where);
    EXPECT_OK(opened);
    return opened.ok() ? *std::move(opened) : nullptr;
  }

  static absl::Status Increment(Sql& sql) {
    STORE_ASSIGN_OR_RETURN(const auto old, FindSetting(sql, "count"));
    return PutSettingRow(sql, "count", std::to_string(std::stoi(old.value_or("0")) + 1));
  }

  static std::string Count(Registry& registry) {
    std::string count;
    EXPECT_OK(registry.Read([&](Sql& sql) -> absl::Status {
      STORE_ASSIGN_OR_RETURN(const auto found, FindSetting(sql, "count"));
      count = found.value_or("");
      return absl::OkStatus();
    }));
    return count;
  }

  // Ends all sessions but its own, as a restart of the server does.
  static void BreakSessions() {
    PostgresScript(TestPostgres(),
                   "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                   "WHERE pid <> pg_backend_pid() AND application_name = 'docmemd'");
  }

  // The connection string with another port: libpq takes the last one.
  std::string Through(const Relay& relay) const {
    return absl::StrCat(where_, " port=", relay.port());
  }
  static uint16_t ServerPort() {
    const std::string_view text = TestPostgres();
    return static_cast<uint16_t>(std::stoi(std::string(text.substr(text.find("port=") + 5))));
  }

  TemporaryFolder folder_;
  std::string where_;
};

TEST_F(PostgresRegistryTest, ASessionThatBrokeIsReplaced) {
  const auto registry = Open(where_);
  ASSERT_OK(registry->Write(Increment));
  EXPECT_EQ(Count(*registry), "1");
  BreakSessions();
  EXPECT_EQ(Count(*registry), "1");
  BreakSessions();
  ASSERT_OK(registry->Write(Increment));
  EXPECT_EQ(Count(*registry), "2");
}

TEST_F(PostgresRegistryTest, ASessionThatBreaksUnderABodyRunsItAgain) {
  const auto registry = Open(where_);
  int runs = 0;
  ASSERT_OK(registry->Write([&](Sql& sql) -> absl::Status {
    STORE_RETURN_IF_ERROR(Increment(sql));
    if (++runs == 1) BreakSessions();
    return Increment(sql);
  }));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(Count(*registry), "2");
}

TEST_F(PostgresRegistryTest, ALostCommitIsDoneOnceWhereverItGotLost) {
  Relay relay(ServerPort());
  const auto registry = Open(Through(relay));
  for (int round = 1; round <= 10; ++round) {
    relay.CutNext(round % 2 == 0 ? Relay::Cut::kBeforeCommit : Relay::Cut::kBehindCommit);
    ASSERT_OK(registry->Write(Increment));
    EXPECT_EQ(relay.cuts(), round);
    EXPECT_EQ(Count(*registry), std::to_string(round));
  }
}

TEST_F(PostgresRegistryTest, AServerThatIsGoneIsUnavailable) {
  const absl::StatusOr<std::unique_ptr<Registry>> opened =
      OpenPostgresRegistry("host=127.0.0.1 port=1 user=nobody");
  EXPECT_TRUE(absl::IsUnavailable(opened.status()));
  EXPECT_EQ(ReasonOf(opened.status()), "REGISTRY_UNAVAILABLE");
}

TEST_F(PostgresRegistryTest, WritersOfTwoProcessesDoNotMix) {
  const auto here = Open(where_);
  const auto there = Open(where_);
  constexpr int kRounds = 50;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) EXPECT_OK(there->Write(Increment));
  });
  for (int i = 0; i < kRounds; ++i) EXPECT_OK(here->Write(Increment));
  other.join();
  EXPECT_EQ(Count(*here), std::to_string(2 * kRounds));
}

TEST_F(PostgresRegistryTest, TwoThatOpenAnEmptyDatabaseMakeItsTablesOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] { EXPECT_NE(Open(where_), nullptr); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PostgresRegistryTest, NewerTablesAreRefusedByNumber) {
  const auto registry = Open(where_);
  ASSERT_OK(registry->Write(
      [](Sql& sql) { return sql.Execute("UPDATE docmem_registry SET version = 99"); }));
  const auto refused = OpenPostgresRegistry(where_);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_NE(refused.status().message().find("version 99"), absl::string_view::npos);
}

TEST_F(PostgresRegistryTest, TablesThatAreDamagedAreDataLossAndToldWithoutWhatUsersStored) {
  const auto registry = Open(where_);
  ASSERT_OK(registry->Write([](Sql& sql) { return sql.Execute("DROP TABLE settings"); }));
  const absl::Status status =
      registry->Write([](Sql& sql) { return PutSettingRow(sql, "key", "a-secret"); });
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message().find("a-secret"), absl::string_view::npos);
}

}  // namespace
}  // namespace docmem::store
