// Replays traces of questions over many documents against the policies that choose what to unload,
// and prints how often a memory was there: one line of CSV per trace, policy and budget. See
// unload_policies.py, which draws them.
//   unload_policy_simulator [DOCUMENTS [QUESTIONS]]

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "adapter_store/unload_policy.h"

namespace docmem::store {
namespace {

// Loading: 0.9 GB/s (47 MB in 53 ms: `load_vs_read` of `./dev bench` when the default was chosen),
// and 1 ms whatever the size (the demo loads 3.9 MB in 5 ms). One load takes longer than another by
// chance: the policies see times that are lognormal around these.
constexpr double kLoadBytesPerSecond = 0.9e9;
constexpr double kLoadSeconds = 0.001;
constexpr double kLoadSpread = 0.5;

struct Memory {
  ResidentKey key;
  uint64_t bytes = 0;
};

// Documents of lognormal length around 2,000 tokens on SmolLM2-135M in bf16: a cache at ρ = 0.9
// each, and of every second document an adapter of rank 16 on all modules.
std::vector<std::vector<Memory>> MakeDocuments(size_t count, std::mt19937_64* random) {
  constexpr double kCacheBytesPerToken = 2304.0, kMedianTokens = 2000.0, kSpread = 1.0;
  constexpr uint64_t kAdapterBytes = 9'770'000;
  std::lognormal_distribution<double> tokens(std::log(kMedianTokens), kSpread);
  std::vector<std::vector<Memory>> documents(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string id = std::to_string(i);
    const double length = std::clamp(tokens(*random), 50.0, 8000.0);
    documents[i].push_back(
        {{ResidentKind::kCache, id}, static_cast<uint64_t>(length * kCacheBytesPerToken)});
    if (i % 2 == 0) documents[i].push_back({{ResidentKind::kAdapter, id}, kAdapterBytes});
  }
  std::shuffle(documents.begin(), documents.end(), *random);  // size says nothing of popularity
  return documents;
}

using Trace = std::vector<uint32_t>;  // the document of each question

Trace Zipf(size_t documents, size_t questions, double exponent, std::mt19937_64* random) {
  std::vector<double> weights(documents);
  for (size_t i = 0; i < documents; ++i)
    weights[i] = std::pow(static_cast<double>(i + 1), -exponent);
  std::discrete_distribution<uint32_t> draw(weights.begin(), weights.end());
  Trace trace(questions);
  for (uint32_t& document : trace) document = draw(*random);
  return trace;
}

// A third of the questions walk through all documents in turn, as an evaluation does.
Trace WithScan(Trace trace, size_t documents) {
  uint32_t next = 0;
  for (size_t i = 0; i < trace.size(); i += 3) {
    trace[i] = next;
    next = static_cast<uint32_t>((next + 1) % documents);
  }
  return trace;
}

struct Outcome {
  uint64_t lookups = 0, hits = 0;
  double bytes = 0.0, hit_bytes = 0.0, load_seconds = 0.0;
};

// One question after another: what it needs is loaded, the policy's first ones making room.
class Tier {
 public:
  Tier(uint64_t budget, std::unique_ptr<UnloadPolicy> policy)
      : budget_(budget), policy_(std::move(policy)) {}

  void Ask(const std::vector<Memory>& memories, bool counts) {
    for (const Memory& memory : memories) policy_->Remove(memory.key);  // in use now
    for (const Memory& memory : memories) {
      const bool hit = loaded_.contains(memory.key);
      if (!hit) Load(memory);
      if (counts) Count(memory, hit);
    }
    for (const Memory& memory : memories) {
      policy_->Add({memory.key, memory.bytes, absl::Seconds(loaded_[memory.key])});
    }
  }
  const Outcome& outcome() const { return outcome_; }

 private:
  static double SecondsOf(const Memory& memory) {
    return kLoadSeconds + static_cast<double>(memory.bytes) / kLoadBytesPerSecond;
  }

  void Load(const Memory& memory) {
    std::vector<ResidentKey> out;
    uint64_t freed = 0;
    policy_->ForEach([&](const UnloadCandidate& candidate) {
      if (used_ - freed + memory.bytes <= budget_) return false;
      freed += candidate.bytes;
      out.push_back(candidate.key);
      return true;
    });
    for (const ResidentKey& key : out) {
      policy_->Unload(key);
      loaded_.erase(key);
    }
    used_ += memory.bytes - freed;
    loaded_[memory.key] = SecondsOf(memory) * chance_(random_);
  }

  void Count(const Memory& memory, bool hit) {
    const auto bytes = static_cast<double>(memory.bytes);
    ++outcome_.lookups;
    outcome_.bytes += bytes;
    if (hit) {
      ++outcome_.hits;
      outcome_.hit_bytes += bytes;
    } else {
      outcome_.load_seconds += SecondsOf(memory);
    }
  }

  const uint64_t budget_;
  uint64_t used_ = 0;
  std::unique_ptr<UnloadPolicy> policy_;
  absl::flat_hash_map<ResidentKey, double> loaded_;  // and the seconds that its load took
  std::mt19937_64 random_{2};
  std::lognormal_distribution<double> chance_{0.0, kLoadSpread};
  Outcome outcome_;
};

void Replay(const char* name, const Trace& trace,
            const std::vector<std::vector<Memory>>& documents) {
  double total = 0.0;
  for (const auto& memories : documents) {
    for (const Memory& memory : memories) total += static_cast<double>(memory.bytes);
  }
  for (const double share : {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4}) {
    for (const NamedUnloadPolicy& policy : kUnloadPolicies) {
      Tier tier(static_cast<uint64_t>(share * total), policy.make());
      for (size_t i = 0; i < trace.size(); ++i) {
        tier.Ask(documents[trace[i]], /*counts=*/i >= trace.size() / 2);  // the first half warms up
      }
      const Outcome& outcome = tier.outcome();
      const auto lookups = static_cast<double>(outcome.lookups);
      std::printf("%s,%s,%.4f,%.0f,%.4f,%.4f,%.3f\n", name, policy.name, share, share * total / 1e6,
                  static_cast<double>(outcome.hits) / lookups, outcome.hit_bytes / outcome.bytes,
                  outcome.load_seconds / lookups * 1e3);
      std::fflush(stdout);
    }
  }
}

int Run(size_t count, size_t questions) {
  std::mt19937_64 random(1);
  const auto documents = MakeDocuments(count, &random);
  std::printf("trace,policy,budget_share,budget_mb,hit_rate,byte_hit_rate,load_ms_per_lookup\n");
  for (const double exponent : {0.7, 0.9, 1.1}) {
    const Trace trace = Zipf(count, questions, exponent, &random);
    char name[32];
    std::snprintf(name, sizeof name, "zipf %.1f", exponent);
    Replay(name, trace, documents);
    if (exponent == 0.9) Replay("zipf 0.9 and scan", WithScan(trace, count), documents);
  }
  return 0;
}

}  // namespace
}  // namespace docmem::store

int main(int argc, char** argv) {
  const auto number = [&](int index, size_t otherwise) {
    return argc > index ? std::strtoull(argv[index], nullptr, 10) : otherwise;
  };
  const size_t documents = number(1, 100'000), questions = number(2, 1'000'000);
  if (documents == 0 || questions == 0) {
    std::fputs("usage: unload_policy_simulator [DOCUMENTS [QUESTIONS]], both above 0\n", stderr);
    return 2;
  }
  return docmem::store::Run(documents, questions);
}
