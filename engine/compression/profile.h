#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace docmem::engine {

inline constexpr uint32_t kRatioOnePpm = 1'000'000;

/// How tokens are chosen for eviction. Only `kCompactor` is implemented so far; the others are
/// refused with `kUnimplemented`.
enum class Profile { kCompactor, kKnorm, kRandom, kStreaming, kCompactorVllm };

/// "compactor", "knorm", "random", "streaming", "compactor-vllm".
std::string ProfileName(Profile profile);
std::optional<Profile> ProfileFromName(const std::string& name);

/// One way to compress a context.
struct Compression {
  /// Fraction of the document's tokens that is evicted, in millionths, 0 … 1,000,000.
  uint32_t ratio_ppm = 900'000;
  Profile profile = Profile::kCompactor;
  /// Seed of the Gaussian sketch.
  uint64_t seed = 0;
  /// Weight of the leverage score; unset: the ratio itself.
  std::optional<double> blend;
};

/// Tokens kept per KV head: head + (S − head)·(10⁶ − ppm) div 10⁶.
int64_t KeptTokens(int64_t context_tokens, int64_t head_tokens, uint32_t ratio_ppm);

}  // namespace docmem::engine
