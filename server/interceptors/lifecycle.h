#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "server/interceptors/methods.h"

namespace docmem::server {

enum class Phase { kOpeningRegistry, kLoadingModel, kServing, kRecovery, kStopping };

/// Where the daemon is between start and stop. Thread-safe, lock-free.
class Lifecycle {
 public:
  void SetPhase(Phase phase) {
    if (phase == Phase::kServing) opened_.store(true);
    if (phase == Phase::kRecovery) recovers_.store(true);
    phase_.store(phase);
  }
  /// `Drain` and its undoing; kStopping implies it.
  void SetDraining(bool draining) { draining_.store(draining); }

  /// Part of the model that is loaded, 0 to 1.
  void SetLoadProgress(double progress) { load_progress_.store(progress); }

  Phase phase() const { return phase_.load(); }
  bool draining() const { return draining_.load() || phase() == Phase::kStopping; }
  double load_progress() const { return load_progress_.load(); }
  /// New work is taken.
  bool ready() const { return phase() == Phase::kServing && !draining(); }

  /// OK, or UNAVAILABLE: STARTING, RECOVERY_MODE or DRAINING.
  absl::Status Accepts(Availability availability) const;

 private:
  std::atomic<bool> opened_{false};
  std::atomic<bool> recovers_{false};
  std::atomic<Phase> phase_{Phase::kOpeningRegistry};
  std::atomic<bool> draining_{false};
  std::atomic<double> load_progress_{0.0};
};

}  // namespace docmem::server
