#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/backend.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

// Nothing is ever loaded, so there is nothing to forget.
class NothingLoaded final : public Residency {
 public:
  void SetPins(const store::Document&, const store::Adapter*) override {}
  void Forget(const store::DocumentKey&, const store::Cache&) override {}
  void Forget(const store::Adapter&) override {}
  void ForgetDocument(const store::DocumentKey&) override {}
  void Prefetch(const store::DocumentKey&, const store::Cache&, const store::Adapter*,
                absl::AnyInvocable<void(absl::Status)> done) override {
    done(NoModel());
  }
  bool IsLoaded(const store::DocumentKey&, const store::Cache&) const override { return false; }
  bool IsLoaded(const store::Adapter&) const override { return false; }
  std::vector<ResidentMemory> Residents() const override { return {}; }
  store::ResidentStats Stats() const override { return {}; }

  static absl::Status NoModel() {
    return Error(absl::StatusCode::kUnavailable, reason::kRecoveryMode,
                 "no model is loaded in recovery mode");
  }
};

class NothingAsked final : public Asker {
 public:
  absl::Status Submit(Question, std::shared_ptr<AnswerSink>) override {
    return NothingLoaded::NoModel();
  }
  bool End(const std::string&, const std::string&, absl::Status) override { return false; }
};

class RecoveryBackend final : public Backend {
 public:
  Residency* residency() override { return &residency_; }
  Asker* asker() override { return &asker_; }
  Builds* builds() override { return nullptr; }
  AdapterIntake* intake() override { return nullptr; }
  Archives* archives() override { return nullptr; }
  Trainings* trainings() override { return nullptr; }
  const ModelFacts* model() const override { return nullptr; }

  QueueFacts Queue() const override { return {}; }
  absl::Duration SliceAge() const override { return absl::ZeroDuration(); }
  void SuspendTrainings(const absl::Status&) override {}
  void EndAll(const absl::Status&) override {}
  void Stop(const absl::Status&) override {}

 private:
  NothingLoaded residency_;
  NothingAsked asker_;
};

}  // namespace

std::unique_ptr<Backend> Backend::WithoutModel() { return std::make_unique<RecoveryBackend>(); }

}  // namespace docmem::server
