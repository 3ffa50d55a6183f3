#include "server/telemetry/metrics.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "server/telemetry/metrics_server.h"

namespace docmem::server {
namespace {

using testing::HasSubstr;
using testing::Not;

MetricsSample SampleOf(uint64_t documents) {
  MetricsSample sample;
  sample.disk.emplace();
  sample.disk->budget_bytes = 1 << 30;
  sample.disk->documents = documents;
  sample.disk->cache = {documents, documents * 4096};
  sample.disk->checkpoint = {1, 77};
  sample.disk->orphans_collected = 3;
  sample.device.emplace();
  sample.device->budget_bytes = 1 << 20;
  auto& caches = sample.device->kinds[static_cast<int>(store::ResidentKind::kCache)];
  caches.resident_bytes = 4096;
  caches.leased_bytes = 1024;
  caches.lookups = 10;
  caches.hits = 7;
  caches.loads_failed = 1;
  sample.running_requests = 2;
  return sample;
}

TEST(Metrics, WhatOthersCountIsReadAtEachScrape) {
  Metrics metrics("1.2.3");
  metrics.SetSampler([] { return SampleOf(5); });
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("docmem_build_info{version=\"1.2.3\"} 1"));
  EXPECT_THAT(text, HasSubstr("docmem_budget_bytes{tier=\"disk\"} 1073741824"));
  EXPECT_THAT(text, HasSubstr("docmem_resident_bytes{kind=\"cache\",tier=\"device\"} 4096"));
  EXPECT_THAT(text, HasSubstr("docmem_resident_items{kind=\"cache\",tier=\"disk\"} 5"));
  EXPECT_THAT(text, HasSubstr("docmem_resident_bytes{kind=\"checkpoint\",tier=\"disk\"} 77"));
  EXPECT_THAT(text, HasSubstr("docmem_hits_total{kind=\"cache\",tier=\"device\"} 7"));
  EXPECT_THAT(text,
              HasSubstr("docmem_loads_total{kind=\"cache\",result=\"failed\",tier=\"device\"} 1"));
  EXPECT_THAT(text, HasSubstr("docmem_requests_running 2"));
  EXPECT_THAT(metrics.Text(), HasSubstr("docmem_orphans_collected_total 3"));
}

TEST(Metrics, ASamplerThatIsTakenAwayIsNotCalledAgain) {
  Metrics metrics("1");
  metrics.SetSampler([] { return SampleOf(1); });
  metrics.SetSampler({});
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("docmem_budget_bytes{")));
}

TEST(Metrics, RequestsAreCountedByMethodAndCode) {
  Metrics metrics("1");
  metrics.CallFinished("Query.Ask", true, absl::StatusCode::kOk, absl::Seconds(1));
  metrics.CallFinished("Query.Ask", true, absl::StatusCode::kDataLoss, absl::Seconds(1));
  metrics.CallFinished("Admin.Drain", false, absl::StatusCode::kOk, absl::Seconds(1));
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("docmem_requests_total{code=\"DATA_LOSS\",method=\"Query.Ask\"} 1"));
  EXPECT_THAT(text, HasSubstr("docmem_request_seconds_count{method=\"Query.Ask\"} 2"));
  EXPECT_THAT(text, Not(HasSubstr("docmem_request_seconds_count{method=\"Admin.Drain\"}")));
}

TEST(Metrics, EverySeriesThatCanExistTogetherStaysBelow64KiB) {
  Metrics metrics("1.2.3");
  metrics.SetSampler([] { return SampleOf(5000); });
  metrics.SetModel({"SmolLM2-135M-Instruct", "llama", "float32", "cpu", std::string(64, 'a')});
  constexpr int kMethods = 36;
  for (int method = 0; method < kMethods; ++method) {
    const std::string name = "Collection.Method" + std::to_string(method);
    for (int code = 0; code <= 16; ++code) {
      metrics.CallFinished(name, method < 5, static_cast<absl::StatusCode>(code), absl::Seconds(1));
    }
  }
  metrics.AnswerFinished({absl::Seconds(1), absl::Seconds(1), 10, 20});
  metrics.TokenGap(absl::Milliseconds(20));
  metrics.StepFinished(8, absl::Milliseconds(20));
  for (const auto tier : {store::Tier::kDisk, store::Tier::kHost, store::Tier::kDevice}) {
    metrics.LoadFinished(tier, absl::Milliseconds(20));
  }
  metrics.BuildFinished({.prefill = absl::Seconds(1), .evicted_tokens = 1000});
  EXPECT_LE(metrics.Text().size(), 64U * 1024U);
}

// The body of one HTTP GET.
std::string Get(int port, const std::string& path) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(send(connection, request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  std::string response;
  char buffer[4096];
  for (ssize_t n = 0; (n = recv(connection, buffer, sizeof(buffer), 0)) > 0;) {
    response.append(buffer, static_cast<size_t>(n));
  }
  close(connection);
  return response;
}

TEST(MetricsServer, ServesTheMetricsAndRefusesATakenPort) {
  Metrics metrics("1");
  auto server = MetricsServer::Start("127.0.0.1:0", metrics);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_GT((*server)->port(), 0);
  EXPECT_THAT(Get((*server)->port(), "/metrics"), HasSubstr("docmem_build_info"));
  const std::string taken = "127.0.0.1:" + std::to_string((*server)->port());
  EXPECT_EQ(MetricsServer::Start(taken, metrics).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace docmem::server
