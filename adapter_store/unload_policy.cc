#include "adapter_store/unload_policy.h"

#include <algorithm>
#include <list>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace docmem::store {
namespace {

class LruPolicy : public UnloadPolicy {
 public:
  void Add(const UnloadCandidate& candidate) override {
    Remove(candidate.key);
    places_[candidate.key] = order_.insert(order_.end(), candidate);
  }

  void Remove(const ResidentKey& key) override {
    const auto place = places_.find(key);
    if (place == places_.end()) return;
    order_.erase(place->second);
    places_.erase(place);
  }

  void Unload(const ResidentKey& key) override { Remove(key); }

  void ForEach(const std::function<bool(const UnloadCandidate&)>& visit) const override {
    for (const UnloadCandidate& candidate : order_) {
      if (!visit(candidate)) return;
    }
  }

 private:
  std::list<UnloadCandidate> order_;
  absl::flat_hash_map<ResidentKey, std::list<UnloadCandidate>::iterator> places_;
};

class GreedyDualSizePolicy : public UnloadPolicy {
 public:
  void Add(const UnloadCandidate& candidate) override {
    Remove(candidate.key);
    const double bytes = static_cast<double>(std::max<uint64_t>(candidate.bytes, 1));
    const double worth = age_ + absl::ToDoubleSeconds(candidate.load_time) / bytes;
    places_[candidate.key] = order_.emplace(std::pair(worth, next_++), candidate).first;
  }

  void Remove(const ResidentKey& key) override {
    const auto place = places_.find(key);
    if (place == places_.end()) return;
    order_.erase(place->second);
    places_.erase(place);
  }

  void Unload(const ResidentKey& key) override {
    if (const auto place = places_.find(key); place != places_.end()) {
      age_ = std::max(age_, place->second->first.first);
    }
    Remove(key);
  }

  void ForEach(const std::function<bool(const UnloadCandidate&)>& visit) const override {
    for (const auto& [worth, candidate] : order_) {
      if (!visit(candidate)) return;
    }
  }

 private:
  // By worth, then by when it was last used.
  std::map<std::pair<double, uint64_t>, UnloadCandidate> order_;
  absl::flat_hash_map<ResidentKey, decltype(order_)::iterator> places_;
  uint64_t next_ = 0;
  double age_ = 0.0;
};

}  // namespace

std::unique_ptr<UnloadPolicy> MakeLruPolicy() { return std::make_unique<LruPolicy>(); }

std::unique_ptr<UnloadPolicy> MakeGreedyDualSizePolicy() {
  return std::make_unique<GreedyDualSizePolicy>();
}

std::unique_ptr<UnloadPolicy> MakeUnloadPolicy(std::string_view name) {
  for (const NamedUnloadPolicy& policy : kUnloadPolicies) {
    if (policy.name == name) return policy.make();
  }
  return nullptr;
}

}  // namespace docmem::store
