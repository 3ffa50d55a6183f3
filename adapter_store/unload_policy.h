#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace docmem::store {

enum class ResidentKind { kCache, kAdapter };
inline constexpr int kResidentKinds = 2;

struct ResidentKey {
  ResidentKind kind = ResidentKind::kCache;
  std::string id;  ///< of one immutable version, e.g. a stored file's id or a content hash
  bool operator==(const ResidentKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const ResidentKey& key) {
    return H::combine(std::move(state), static_cast<int>(key.kind), key.id);
  }
};

struct UnloadCandidate {
  ResidentKey key;
  uint64_t bytes = 0;
  absl::Duration load_time;  ///< what loading it took
};

/// Orders the loaded items that may be unloaded: those without lease and pin. Called under the
/// resident cache's lock, so it needs none and must not call back.
class UnloadPolicy {
 public:
  virtual ~UnloadPolicy() = default;
  /// The item became unloadable now, at the end of its last use.
  virtual void Add(const UnloadCandidate& candidate) = 0;
  /// The item was leased, pinned or erased. Unknown keys are no error.
  virtual void Remove(const ResidentKey& key) = 0;
  /// The item is unloaded to make room (and forgotten).
  virtual void Unload(const ResidentKey& key) = 0;
  /// Visits candidates, those to unload first first, until `visit` returns false.
  virtual void ForEach(const std::function<bool(const UnloadCandidate&)>& visit) const = 0;
};

/// Least recently used first.
std::unique_ptr<UnloadPolicy> MakeLruPolicy();

/// GreedyDual-Size (Cao and Irani, USENIX 1997): first what was cheapest to load per byte when it
/// was last used, aged by the worth of what was unloaded since. Of equal worth the least recently
/// used first.
std::unique_ptr<UnloadPolicy> MakeGreedyDualSizePolicy();

/// As operators name them; the first is the default.
struct NamedUnloadPolicy {
  const char* name;
  std::unique_ptr<UnloadPolicy> (*make)();
};
inline constexpr NamedUnloadPolicy kUnloadPolicies[] = {
    {"greedy-dual-size", MakeGreedyDualSizePolicy}, {"lru", MakeLruPolicy}};

/// Null for an unknown name.
std::unique_ptr<UnloadPolicy> MakeUnloadPolicy(std::string_view name);

}  // namespace docmem::store
