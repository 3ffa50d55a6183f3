#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/resident_core.h"

namespace prometheus {
class Collectable;
}

namespace docmem::server {

/// What is read at each scrape instead of being counted.
struct MetricsSample {
  std::optional<store::StoreStats> disk;
  std::optional<store::ResidentStats> host, device;
  int64_t running_requests = 0;
  int64_t waiting_requests = 0;
};

/// One answered question.
struct AnswerMeasures {
  absl::Duration queue;
  absl::Duration first_token;
  uint32_t tokens_in = 0;
  uint32_t tokens_out = 0;
};

/// One ingestion or cache build.
struct BuildMeasures {
  absl::Duration queue, tokenize, prefill, score, publish;
  uint64_t evicted_tokens = 0;  ///< per layer and KV head, over all caches
};

struct ModelLabels {
  std::string name, family, dtype, device, weights_digest;
};

/// All metrics of the daemon; their names are in metrics.cc and nowhere else. No label per
/// document, collection or principal. Thread-safe; recording never blocks on I/O.
class Metrics {
 public:
  explicit Metrics(const std::string& version);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// `method` is "Service.Method", such as "Query.Ask", from a fixed table; `timed` adds it to the
  /// duration histogram.
  void CallFinished(std::string_view method, bool timed, absl::StatusCode code,
                    absl::Duration duration);
  void AnswerFinished(const AnswerMeasures& answer);
  /// Between two tokens of one answer.
  void TokenGap(absl::Duration gap);
  void StepFinished(int64_t rows, absl::Duration duration);
  /// A cache or adapter came from a slower tier.
  void LoadFinished(store::Tier source, absl::Duration duration);
  void BuildFinished(const BuildMeasures& build);
  /// `loss` in nats per label token.
  void TrainingStepFinished(double loss);
  /// A changed token file couldn't be taken.
  void TokenReloadFailed();
  /// A changed certificate, key or client CA couldn't be taken.
  void TlsReloadFailed();
  /// Lines of the audit log that couldn't be written.
  void AuditLinesLost(uint64_t lines);
  /// Of the certificate that is served; never called without TLS.
  void SetCertificateExpiry(absl::Time expires);
  void SetModel(const ModelLabels& model);

  /// Called at each scrape on the scraper's thread, may block; empty: nothing to read. When this
  /// returns, the sampler before is no longer running.
  void SetSampler(std::function<MetricsSample()> sampler);

  /// For the exposer.
  std::shared_ptr<prometheus::Collectable> collectable() const;
  /// The exposition text.
  std::string Text() const;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace docmem::server
