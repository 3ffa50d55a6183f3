#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <vector>

#include "adapter_store/adapter_store.h"
#include "adapter_store/sync.h"
#include "server/interceptors/call.h"
#include "server/interceptors/late.h"
#include "server/runtime/residency.h"
#include "server/services/adapter_service.h"
#include "server/services/admin_service.h"
#include "server/services/collection_service.h"
#include "server/services/document_service.h"
#include "server/services/query_service.h"
#include "server/services/reflection_service.h"
#include "server/services/training_service.h"

namespace docmem::server {

/// For tests: says what is loaded as it was told, notes what is forgotten. Loads end at once unless
/// they are held.
class FakeResidency : public Residency {
 public:
  void SetPins(const store::Document& document, const store::Adapter* current) override;
  void Forget(const store::DocumentKey& document, const store::Cache& cache) override;
  void Forget(const store::Adapter& adapter) override;
  void ForgetDocument(const store::DocumentKey& document) override;
  void Prefetch(const store::DocumentKey& document, const store::Cache& cache,
                const store::Adapter* adapter,
                absl::AnyInvocable<void(absl::Status)> done) override;
  bool IsLoaded(const store::DocumentKey&, const store::Cache&) const override { return false; }
  bool IsLoaded(const store::Adapter&) const override { return false; }
  std::vector<ResidentMemory> Residents() const override { return residents; }
  store::ResidentStats Stats() const override { return {}; }

  /// "pin ID VERSION", "forget ID", … in their order.
  std::vector<std::string> notes();

  /// Loads that begin from now on end with `EndLoads` only.
  void HoldLoads();
  size_t held_loads();
  /// Ends all held loads with `status`, on the calling thread; later ones end at once again.
  void EndLoads(const absl::Status& status);

  std::vector<ResidentMemory> residents;

 private:
  using Done = absl::AnyInvocable<void(absl::Status)>;
  void Note(std::string note);

  store::Mutex mutex_;
  bool holds_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Done> held_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
};

/// For tests: answers every question at once, with nothing.
class FakeAsker : public Asker {
 public:
  absl::Status Submit(Question question, std::shared_ptr<AnswerSink> sink) override;
  bool End(const std::string&, const std::string&, absl::Status) override { return false; }
};

/// For tests: all services on a real gRPC server over loopback, as in a daemon that is still
/// loading. `Serve` brings a real, empty store and lets calls through; there is no model, so
/// builds and uploads have nothing behind them.
class TestServer {
 public:
  explicit TestServer(std::unique_ptr<Authenticator> authenticator = MakeOpenAuthenticator(),
                      absl::Duration silent_client_limit = absl::Minutes(5));
  ~TestServer();

  static constexpr int kExecutorThreads = 2;

  void Serve();
  /// A ready document of the collection `default` with one cache per name; its id is the
  /// name's SHA-256.
  store::Document Publish(const std::string& id, const std::vector<std::string>& cache_ids);
  /// Version 1 and up of a document's adapters, current.
  store::Adapter PublishAdapter(const std::string& id, const std::string& content);

  std::shared_ptr<grpc::Channel> channel;
  Lifecycle lifecycle;
  FakeResidency residency;
  FakeAsker asker;
  std::unique_ptr<store::AdapterStore> store;
  QueueFacts queue;
  ModelFacts model;
  Timer timer;
  OpenCalls open_calls{&timer};

 private:
  const std::string folder_;
  const std::unique_ptr<Authenticator> authenticator_;
  Log log_{LogLevel::kError};
  Metrics metrics_{"test"};
  Executor executor_{{.threads = kExecutorThreads}};
  const Guard guard_{authenticator_.get(), &lifecycle};
  const ServiceContext context_;

  Late<store::AdapterStore> late_store_;
  Late<Residency> late_residency_;
  Late<AdapterIntake> late_intake_;
  Late<Archives> late_archives_;
  Late<Builds> late_builds_;
  Late<Asker> late_asker_;
  Late<Trainings> late_trainings_;
  Late<const ModelFacts> late_model_;

  CollectionService collections_{context_, &late_store_, &late_residency_};
  DocumentService documents_{context_,
                             {.store = &late_store_,
                              .builds = &late_builds_,
                              .trainings = &late_trainings_,
                              .residency = &late_residency_,
                              .archives = &late_archives_}};
  AdapterService adapters_{context_, {&late_store_, &late_residency_, &late_intake_}};
  TrainingService trainings_{context_, &late_trainings_};
  QueryService queries_{context_, &late_asker_, &late_store_};
  AdminService admin_{context_,
                      {.lifecycle = &lifecycle,
                       .store = &late_store_,
                       .residency = &late_residency_,
                       .model = &late_model_,
                       .limits = {.max_queue = 7},
                       .queue = [this] { return queue; },
                       .drain = [this](bool drain) { lifecycle.SetDraining(drain); }}};
  ReflectionService reflection_{context_};
  std::unique_ptr<grpc::Server> server_;
};

/// Reason of a status that came over the wire; empty where it has none of ours.
std::string ReasonOf(const grpc::Status& status);
/// The field that a BadRequest blames.
std::string FieldOf(const grpc::Status& status);

/// Calls any method by its path, of whatever streaming kind: one message of these bytes, then no
/// more.
grpc::Status CallWithMessage(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                             const std::string& bytes);
grpc::Status CallWithEmptyMessage(const std::shared_ptr<grpc::Channel>& channel,
                                  const std::string& path);

}  // namespace docmem::server
