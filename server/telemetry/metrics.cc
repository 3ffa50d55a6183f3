#include "server/telemetry/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <utility>

#include "adapter_store/sync.h"

namespace docmem::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Labels = prometheus::Labels;
using Buckets = Histogram::BucketBoundaries;

const Buckets& SecondBuckets() {
  static const Buckets kBuckets{0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600};
  return kBuckets;
}
const Buckets& GapBuckets() {
  static const Buckets kBuckets{0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.5, 5};
  return kBuckets;
}
const Buckets& RowBuckets() {
  static const Buckets kBuckets{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  return kBuckets;
}

Family<Counter>& Counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
Family<Gauge>& Gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
Family<Histogram>& Histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

const char* NameOf(store::Tier tier) {
  constexpr const char* kNames[] = {"disk", "host", "device"};
  return kNames[static_cast<int>(tier)];
}

// gRPC's names of the codes, by number. Two never reach a client, see errors/to_grpc.h.
const char* NameOf(absl::StatusCode code) {
  constexpr const char* kNames[] = {"OK",
                                    "CANCELLED",
                                    "INTERNAL",
                                    "INVALID_ARGUMENT",
                                    "DEADLINE_EXCEEDED",
                                    "NOT_FOUND",
                                    "ALREADY_EXISTS",
                                    "PERMISSION_DENIED",
                                    "RESOURCE_EXHAUSTED",
                                    "FAILED_PRECONDITION",
                                    "ABORTED",
                                    "INVALID_ARGUMENT",
                                    "UNIMPLEMENTED",
                                    "INTERNAL",
                                    "UNAVAILABLE",
                                    "DATA_LOSS",
                                    "UNAUTHENTICATED"};
  return kNames[static_cast<int>(code)];
}

// Counts that somebody else keeps come to us as totals.
void RaiseTo(Counter& counter, uint64_t total) {
  const double step = static_cast<double>(total) - counter.Value();
  if (step > 0) counter.Increment(step);
}

}  // namespace

class Metrics::Impl : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    {
      store::MutexLock lock(&sampler_mutex_);
      if (sampler_) Take(sampler_());
    }
    return registry.Collect();
  }

  void SetSampler(std::function<MetricsSample()> sampler) {
    store::MutexLock lock(&sampler_mutex_);
    sampler_ = std::move(sampler);
  }

  mutable prometheus::Registry registry;

  Family<Gauge>& budget = Gauges(registry, "docmem_budget_bytes", "Byte budget of a tier");
  Family<Gauge>& resident =
      Gauges(registry, "docmem_resident_bytes", "Bytes of artifacts that are in a tier");
  Family<Gauge>& items = Gauges(registry, "docmem_resident_items", "Artifacts that are in a tier");
  Family<Gauge>& pinned = Gauges(registry, "docmem_pinned_bytes", "Resident bytes that are pinned");
  Family<Gauge>& leased =
      Gauges(registry, "docmem_leased_bytes", "Resident bytes in use by requests");
  Family<Gauge>& loading =
      Gauges(registry, "docmem_loading_bytes", "Bytes reserved for loads under way");
  Family<Counter>& lookups =
      Counters(registry, "docmem_lookups_total", "Artifacts asked for in a tier");
  Family<Counter>& hits = Counters(registry, "docmem_hits_total", "Of those, found in the tier");
  Family<Counter>& loads = Counters(registry, "docmem_loads_total", "Loads into a tier by result");
  Family<Counter>& unloads =
      Counters(registry, "docmem_unloads_total", "Artifacts that left a tier by reason");
  Family<Histogram>& load_seconds =
      Histograms(registry, "docmem_load_seconds", "Duration of loads by source tier");
  Family<Gauge>& quarantined =
      Gauges(registry, "docmem_quarantined_items", "Damaged documents and files");
  Family<Counter>& orphans =
      Counters(registry, "docmem_orphans_collected_total", "Files without a row that were deleted");

  Family<Counter>& requests =
      Counters(registry, "docmem_requests_total", "Finished requests by method and code");
  Family<Histogram>& request_seconds = Histograms(registry, "docmem_request_seconds",
                                                  "Duration of requests from first to last byte");
  Gauge& running =
      Gauges(registry, "docmem_requests_running", "Questions that are decoded").Add({});
  Gauge& waiting =
      Gauges(registry, "docmem_requests_waiting", "Questions that wait or load").Add({});
  Histogram& queue_seconds =
      Histograms(registry, "docmem_queue_seconds", "Time of questions in the queue")
          .Add({}, SecondBuckets());
  Histogram& first_token_seconds =
      Histograms(registry, "docmem_first_token_seconds", "Time from admission to the first token")
          .Add({}, SecondBuckets());
  Histogram& gap_seconds =
      Histograms(registry, "docmem_inter_token_seconds", "Time between two tokens of an answer")
          .Add({}, GapBuckets());
  Counter& tokens_in =
      Counters(registry, "docmem_tokens_in_total", "Prompt tokens behind the document").Add({});
  Counter& tokens_out = Counters(registry, "docmem_tokens_out_total", "Answer tokens").Add({});
  Histogram& step_rows = Histograms(registry, "docmem_step_rows", "Token rows of an engine step")
                             .Add({}, RowBuckets());
  Histogram& step_seconds =
      Histograms(registry, "docmem_step_seconds", "Duration of engine steps").Add({}, GapBuckets());
  Family<Histogram>& ingest_seconds =
      Histograms(registry, "docmem_ingest_seconds", "Duration of ingestions by phase");
  Counter& evicted = Counters(registry, "docmem_evicted_tokens_total",
                              "Tokens that compression dropped, per layer and KV head")
                         .Add({});
  Counter& training_steps =
      Counters(registry, "docmem_training_steps_total", "Optimiser steps of trainings").Add({});
  Gauge& training_loss =
      Gauges(registry, "docmem_training_loss", "Loss of the last training step, in nats per token")
          .Add({});
  Counter& token_reload_failures =
      Counters(registry, "docmem_token_reload_failures_total",
               "Changed token files that couldn't be taken, the one before staying in force")
          .Add({});
  Counter& tls_reload_failures =
      Counters(registry, "docmem_tls_reload_failures_total",
               "Changed certificates and keys that couldn't be taken, those before being served")
          .Add({});
  Family<Gauge>& certificate_expiry =
      Gauges(registry, "docmem_tls_certificate_expiry_timestamp_seconds",
             "When the served certificate or its chain expires, in Unix time");
  Counter& audit_lines_lost = Counters(registry, "docmem_audit_lines_lost_total",
                                       "Lines of the audit log that couldn't be written")
                                  .Add({});
  Family<Gauge>& build_info = Gauges(registry, "docmem_build_info", "Always 1");
  Family<Gauge>& model_info = Gauges(registry, "docmem_model_info", "Always 1");

 private:
  void Take(const MetricsSample& sample) const {
    running.Set(static_cast<double>(sample.running_requests));
    waiting.Set(static_cast<double>(sample.waiting_requests));
    if (sample.disk) TakeDisk(*sample.disk);
    if (sample.host) TakeTier(store::Tier::kHost, *sample.host);
    if (sample.device) TakeTier(store::Tier::kDevice, *sample.device);
  }

  void TakeDisk(const store::StoreStats& disk) const {
    const std::pair<const char*, store::KindUsage> kinds[] = {{"text", disk.text},
                                                              {"cache", disk.cache},
                                                              {"adapter", disk.adapter},
                                                              {"checkpoint", disk.checkpoint}};
    budget.Add({{"tier", "disk"}}).Set(static_cast<double>(disk.budget_bytes));
    for (const auto& [kind, usage] : kinds) {
      const Labels labels{{"tier", "disk"}, {"kind", kind}};
      resident.Add(labels).Set(static_cast<double>(usage.bytes));
      items.Add(labels).Set(static_cast<double>(usage.items));
    }
    quarantined.Add({{"what", "document"}}).Set(static_cast<double>(disk.quarantined_documents));
    quarantined.Add({{"what", "file"}}).Set(static_cast<double>(disk.quarantined_files));
    RaiseTo(orphans.Add({}), disk.orphans_collected);
  }

  void TakeTier(store::Tier tier, const store::ResidentStats& stats) const {
    budget.Add({{"tier", NameOf(tier)}}).Set(static_cast<double>(stats.budget_bytes));
    for (int i = 0; i < store::kResidentKinds; ++i) {
      const store::ResidentKindStats& kind = stats.kinds[i];
      const bool is_cache = i == static_cast<int>(store::ResidentKind::kCache);
      const Labels labels{{"tier", NameOf(tier)}, {"kind", is_cache ? "cache" : "adapter"}};
      const auto with = [&](const char* key, const char* value) {
        Labels more = labels;
        more[key] = value;
        return more;
      };
      resident.Add(labels).Set(static_cast<double>(kind.resident_bytes));
      items.Add(labels).Set(static_cast<double>(kind.resident_items));
      pinned.Add(labels).Set(static_cast<double>(kind.pinned_bytes));
      leased.Add(labels).Set(static_cast<double>(kind.leased_bytes));
      loading.Add(labels).Set(static_cast<double>(kind.loading_bytes));
      RaiseTo(lookups.Add(labels), kind.lookups);
      RaiseTo(hits.Add(labels), kind.hits);
      RaiseTo(loads.Add(with("result", "ok")), kind.loads_ok);
      RaiseTo(loads.Add(with("result", "failed")), kind.loads_failed);
      RaiseTo(unloads.Add(with("reason", "room")), kind.unloads_for_room);
      RaiseTo(unloads.Add(with("reason", "erased")), kind.unloads_erased);
      RaiseTo(unloads.Add(with("reason", "idle")), kind.unloads_idle);
    }
  }

  mutable store::Mutex sampler_mutex_;
  std::function<MetricsSample()> sampler_ ABSL_GUARDED_BY(sampler_mutex_);
};

Metrics::Metrics(const std::string& version) : impl_(std::make_shared<Impl>()) {
  impl_->build_info.Add({{"version", version}}).Set(1);
}
Metrics::~Metrics() = default;

void Metrics::CallFinished(std::string_view method, bool timed, absl::StatusCode code,
                           absl::Duration duration) {
  const std::string name(method);
  impl_->requests.Add({{"method", name}, {"code", NameOf(code)}}).Increment();
  if (!timed) return;
  impl_->request_seconds.Add({{"method", name}}, SecondBuckets())
      .Observe(absl::ToDoubleSeconds(duration));
}

void Metrics::AnswerFinished(const AnswerMeasures& answer) {
  impl_->queue_seconds.Observe(absl::ToDoubleSeconds(answer.queue));
  impl_->first_token_seconds.Observe(absl::ToDoubleSeconds(answer.first_token));
  impl_->tokens_in.Increment(answer.tokens_in);
  impl_->tokens_out.Increment(answer.tokens_out);
}

void Metrics::TokenGap(absl::Duration gap) {
  impl_->gap_seconds.Observe(absl::ToDoubleSeconds(gap));
}

void Metrics::StepFinished(int64_t rows, absl::Duration duration) {
  impl_->step_rows.Observe(static_cast<double>(rows));
  impl_->step_seconds.Observe(absl::ToDoubleSeconds(duration));
}

void Metrics::LoadFinished(store::Tier source, absl::Duration duration) {
  impl_->load_seconds.Add({{"source", NameOf(source)}}, SecondBuckets())
      .Observe(absl::ToDoubleSeconds(duration));
}

void Metrics::BuildFinished(const BuildMeasures& build) {
  const std::pair<const char*, absl::Duration> phases[] = {{"queue", build.queue},
                                                           {"tokenize", build.tokenize},
                                                           {"prefill", build.prefill},
                                                           {"score", build.score},
                                                           {"publish", build.publish}};
  for (const auto& [phase, duration] : phases) {
    impl_->ingest_seconds.Add({{"phase", phase}}, SecondBuckets())
        .Observe(absl::ToDoubleSeconds(duration));
  }
  impl_->evicted.Increment(static_cast<double>(build.evicted_tokens));
}

void Metrics::TrainingStepFinished(double loss) {
  impl_->training_steps.Increment();
  impl_->training_loss.Set(loss);
}

void Metrics::TokenReloadFailed() { impl_->token_reload_failures.Increment(); }

void Metrics::TlsReloadFailed() { impl_->tls_reload_failures.Increment(); }

void Metrics::AuditLinesLost(uint64_t lines) {
  impl_->audit_lines_lost.Increment(static_cast<double>(lines));
}

void Metrics::SetCertificateExpiry(absl::Time expires) {
  impl_->certificate_expiry.Add({}).Set(absl::ToDoubleSeconds(expires - absl::UnixEpoch()));
}

void Metrics::SetModel(const ModelLabels& model) {
  impl_->model_info
      .Add({{"name", model.name},
            {"family", model.family},
            {"dtype", model.dtype},
            {"device", model.device},
            {"weights", model.weights_digest.substr(0, 16)}})
      .Set(1);
}

void Metrics::SetSampler(std::function<MetricsSample()> sampler) {
  impl_->SetSampler(std::move(sampler));
}

std::shared_ptr<prometheus::Collectable> Metrics::collectable() const { return impl_; }

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(impl_->Collect());
}

}  // namespace docmem::server
