#include "adapter_store/unload_policy.h"

#include <list>
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

}  // namespace

std::unique_ptr<UnloadPolicy> MakeLruPolicy() { return std::make_unique<LruPolicy>(); }

}  // namespace docmem::store
