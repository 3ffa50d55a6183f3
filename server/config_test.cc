#include "server/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "server/config_settings.h"

namespace docmem::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ConfigTest : public testing::Test {
 protected:
  absl::StatusOr<Invocation> Read(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"docmemd", "--model", "/m", "--data", "/d"});
    std::vector<const char*> argv;
    for (const std::string& flag : flags) argv.push_back(flag.c_str());
    return ReadConfig(static_cast<int>(argv.size()), argv.data(), [this](const char* name) {
      const auto it = variables_.find(name);
      return it == variables_.end() ? nullptr : it->second.c_str();
    });
  }

  std::string File(const std::string& text) {
    const std::string path = testing::TempDir() + "docmem_config_test.toml";
    std::ofstream(path) << text;
    return path;
  }

  std::string ErrorOf(const std::vector<std::string>& flags) {
    const auto invocation = Read(flags);
    return invocation.ok() ? "no error" : std::string(invocation.status().message());
  }

  std::string ErrorInFile(const std::string& text) { return ErrorOf({"--config", File(text)}); }

  std::map<std::string, std::string> variables_;
};

TEST_F(ConfigTest, FlagComesBeforeVariableBeforeFileBeforeDefault) {
  const std::string file = File("max_queue = 5\nthreads = 6\ndrain_seconds = 7\n");
  variables_ = {{"DOCMEM_THREADS", "8"}, {"DOCMEM_MAX_QUEUE", "9"}};
  const auto read = Read({"--config", file, "--max-queue", "10"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->options.max_queue, 10U);
  EXPECT_EQ(read->options.threads, 8U);
  EXPECT_EQ(read->options.drain_seconds, 7U);
  EXPECT_EQ(read->options.max_sequences, ServerOptions().max_sequences);
  EXPECT_EQ(read->options.model, "/m");
}

TEST_F(ConfigTest, CheckConfigPrintsEachValueWithItsOriginInTheFormOfTheFile) {
  const std::string file = File("\ndevice_budget = \"2MiB\"\nno_auth = true\n");
  variables_ = {{"DOCMEM_LOG_LEVEL", "error"}};
  const auto read = Read({"--config", file, "--check-config", "--insecure"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->print, HasSubstr("device_budget = 2097152  # " + file + ":2\n"));
  EXPECT_THAT(read->print, HasSubstr("no_auth = true  # " + file + ":3\n"));
  EXPECT_THAT(read->print, HasSubstr("log_level = \"error\"  # DOCMEM_LOG_LEVEL\n"));
  EXPECT_THAT(read->print, HasSubstr("insecure = true  # --insecure\n"));
  EXPECT_THAT(read->print, HasSubstr("listen = \"127.0.0.1:7600\"  # default\n"));
  const std::string again = File(read->print);
  variables_.clear();
  const auto same = Read({"--config", again});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->options.device_budget_bytes, uint64_t{2} << 20);
  EXPECT_EQ(same->options.log_level, LogLevel::kError);
}

TEST_F(ConfigTest, MistakesInTheFileAreNamedWithTheirLine) {
  EXPECT_THAT(ErrorInFile("\n\nmax_queu = 5\n"), HasSubstr("toml:3: unknown key max_queu"));
  EXPECT_THAT(ErrorInFile("[server]\nmax_queue = 5\n"), HasSubstr("toml:1: unknown key server"));
  EXPECT_THAT(ErrorInFile("max_queue = \"5\"\n"),
              HasSubstr("toml:1: max_queue must be a whole number"));
  EXPECT_THAT(ErrorInFile("insecure = 1\n"), HasSubstr("toml:1: insecure must be true or false"));
  EXPECT_THAT(ErrorInFile("listen = 7600\n"), HasSubstr("toml:1: listen must be a string"));
  EXPECT_THAT(ErrorInFile("\nmax_queue = -1\n"), HasSubstr("toml:2: max_queue must be"));
  EXPECT_THAT(ErrorInFile("device_budget = -1\n"), HasSubstr("toml:1: device_budget must be"));
  EXPECT_THAT(ErrorInFile("device_budget = 1.5\n"), HasSubstr("toml:1: device_budget must be"));
  EXPECT_THAT(ErrorInFile("threads = 1\nthreads = 2\n"), HasSubstr("toml:2: "));
  EXPECT_THAT(ErrorInFile("threads =\n"), HasSubstr("toml:1: "));
  EXPECT_THAT(ErrorOf({"--config", "/nowhere.toml"}), HasSubstr("/nowhere.toml"));
}

TEST_F(ConfigTest, MistakesInFlagsAndVariablesAreNamed) {
  EXPECT_THAT(ErrorOf({"--max-queue", "-1"}), HasSubstr("--max-queue: max_queue must be"));
  EXPECT_THAT(ErrorOf({"--registry", "postgresql://me:secret@host/db"}),
              HasSubstr("must not hold a password"));
  EXPECT_THAT(ErrorOf({"--registry", "host=db password=secret"}),
              HasSubstr("must not hold a password"));
  EXPECT_THAT(ErrorOf({"--artifacts", "http://host/bucket"}), HasSubstr("s3://BUCKET/PREFIX"));
  EXPECT_THAT(ErrorOf({"--artifacts", "relative"}), HasSubstr("absolute path"));
  EXPECT_THAT(ErrorOf({"--disk-budget", "-1"}), HasSubstr("--disk-budget: disk_budget must be"));
  EXPECT_THAT(ErrorOf({"--disk-budget", "many"}), HasSubstr("it is \"many\""));
  EXPECT_THAT(ErrorOf({"--listen", "7600"}), HasSubstr("must be HOST:PORT"));
  EXPECT_THAT(ErrorOf({"--unload-policy", "fifo"}), HasSubstr("greedy-dual-size or lru"));
  EXPECT_THAT(ErrorOf({"--device", "gpu"}), HasSubstr("must be cpu or cuda:N"));
  EXPECT_THAT(ErrorOf({"--nothing"}), HasSubstr("--nothing"));
  EXPECT_THAT(ErrorOf({"--max-queue"}), HasSubstr("--max-queue"));
  variables_ = {{"DOCMEM_DTYPE", "int4"}};
  EXPECT_THAT(ErrorOf({}), HasSubstr("DOCMEM_DTYPE: dtype must be"));
}

TEST_F(ConfigTest, AnotherAddressThanLoopbackNeedsProtectionOrItsWaiver) {
  const auto error = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--listen", "0.0.0.0:7600"});
    return ErrorOf(flags);
  };
  EXPECT_THAT(error({}), AllOf(HasSubstr("isn't loopback"), HasSubstr("--insecure"),
                               HasSubstr("--token-file"), HasSubstr("--no-auth")));
  EXPECT_THAT(error({"--insecure"}), AllOf(HasSubstr("--token-file"), Not(HasSubstr("plain"))));
  EXPECT_THAT(error({"--no-auth"}), AllOf(HasSubstr("--insecure"), Not(HasSubstr("anybody"))));
  EXPECT_THAT(error({"--token-file", "/t"}), HasSubstr("--tls-cert"));
  EXPECT_THAT(error({"--tls-cert", "/c", "--tls-key", "/k"}),
              AllOf(HasSubstr("--tls-client-ca"), Not(HasSubstr("plain"))));
  for (const std::vector<std::string>& others :
       {std::vector<std::string>{"--token-file", "/t"}, {"--tls-client-ca", "/a"}, {"--no-auth"}}) {
    std::vector<std::string> flags{"--tls-cert", "/c", "--tls-key", "/k"};
    flags.insert(flags.end(), others.begin(), others.end());
    EXPECT_EQ(error(flags), "no error") << others[0];
  }
  EXPECT_EQ(error({"--insecure", "--no-auth"}), "no error");
  EXPECT_EQ(error({"--insecure", "--token-file", "/t"}), "no error");
  EXPECT_THAT(ErrorOf({"--token-file", "/t", "--no-auth"}), HasSubstr("contradict"));
  for (const char* name : {"127.lan:7600", "127.0.0.1.lan:7600", "127.1:7600", "128.0.0.1:7600"}) {
    EXPECT_THAT(ErrorOf({"--listen", name}), HasSubstr("isn't loopback")) << name;
  }
  for (const char* loopback : {"[::1]:7600", "localhost:0", "127.8.9.10:7600"}) {
    EXPECT_TRUE(Read({"--listen", loopback}).ok()) << loopback;
  }
  EXPECT_TRUE(Read({"--health-listen", "0.0.0.0:7601"}).ok());
}

TEST_F(ConfigTest, FilesOfTlsGoTogether) {
  EXPECT_THAT(ErrorOf({"--tls-cert", "/c"}), HasSubstr("go together"));
  EXPECT_THAT(ErrorOf({"--tls-key", "/k"}), HasSubstr("go together"));
  EXPECT_THAT(ErrorOf({"--tls-client-ca", "/a"}), HasSubstr("needs --tls-cert"));
}

TEST_F(ConfigTest, ModelAndDataAreRequired) {
  const char* argv[] = {"docmemd"};
  const auto read = ReadConfig(1, argv, [](const char*) -> const char* { return nullptr; });
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("--model is required"));
}

TEST_F(ConfigTest, RecoveryNeedsNoModelButItsData) {
  const char* argv[] = {"docmemd", "--recovery", "--data", "/d"};
  const auto none = [](const char*) -> const char* { return nullptr; };
  EXPECT_TRUE(ReadConfig(4, argv, none)->options.recovery);
  EXPECT_THAT(std::string(ReadConfig(2, argv, none).status().message()),
              HasSubstr("--data is required"));
}

TEST_F(ConfigTest, HelpShowsEverySettingWithItsDefault) {
  const auto help = Read({"--help"});
  ASSERT_TRUE(help.ok());
  for (const Setting& setting : AllSettings()) {
    EXPECT_THAT(help->print, HasSubstr(setting.flag()));
  }
  EXPECT_THAT(help->print, HasSubstr("127.0.0.1:7600"));
  EXPECT_THAT(Read({"--version"})->print, HasSubstr("docmemd "));
}

TEST(ParseSize, TakesBinaryAndDecimalUnitsAndNothingElse) {
  EXPECT_EQ(ParseSize("0").value(), 0U);
  EXPECT_EQ(ParseSize("512MiB").value(), uint64_t{512} << 20);
  EXPECT_EQ(ParseSize("2GB").value(), 2'000'000'000U);
  for (const char* bad : {"", "MiB", "1.5GiB", "-1", "+1", " 1", "1 MiB", "1mib", "0x10",
                          "99999999999999999999", "18446744073709551615KiB"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
}

TEST(SplitAddress, KnowsNamesAndBothKindsOfNumbers) {
  std::string host;
  int port = 0;
  EXPECT_TRUE(SplitAddress("[::1]:80", &host, &port));
  EXPECT_EQ(host, "::1");
  EXPECT_EQ(port, 80);
  for (const char* bad :
       {"", ":80", "host", "host:", "host:x", "host:-1", "host:65536", "::1:80"}) {
    EXPECT_FALSE(SplitAddress(bad, &host, &port)) << bad;
  }
}

}  // namespace
}  // namespace docmem::server
