#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace docmem::engine {

inline constexpr uint32_t kRatioOnePpm = 1'000'000;

/// How tokens are chosen for eviction; each is defined in its `scorer_*.h`.
enum class Profile {
  kCompactor,      ///< leverage and attention, as kvpress computes them
  kKnorm,          ///< keys of small norm stay
  kRandom,         ///< by a pure function of the seed
  kStreaming,      ///< the latest stay
  kCompactorVllm,  ///< leverage and attention, as the Compactor authors' engine computes them: one
                   ///< choice over all heads of a layer, so heads keep different numbers of tokens
};

/// "compactor", "knorm", "random", "streaming", "compactor-vllm".
std::string ProfileName(Profile profile);
std::optional<Profile> ProfileFromName(const std::string& name);

/// One way to compress a context.
struct Compression {
  /// Fraction of the document's tokens that is evicted, in millionths, 0 … 1,000,000.
  uint32_t ratio_ppm = 900'000;
  Profile profile = Profile::kCompactor;
  /// Seed of the Gaussian sketch and of random scores; `kKnorm` and `kStreaming` have none.
  uint64_t seed = 0;
  /// Weight of the leverage score; unset: see `BlendOf`. Only for the two Compactor profiles.
  std::optional<double> blend;
  /// Keys and values as int8 (see `QuantiseKv`) instead of the compute dtype.
  bool int8 = false;
};

/// Whether anything is chosen: at ρ = 0 and 1 nothing is.
constexpr bool IsScored(const Compression& compression) {
  return compression.ratio_ppm > 0 && compression.ratio_ppm < kRatioOnePpm;
}

/// Whether the profile has a leverage score, and so a blend.
constexpr bool UsesBlend(Profile profile) {
  return profile == Profile::kCompactor || profile == Profile::kCompactorVllm;
}

/// Weight of the leverage score: `blend`; unset, the ratio itself (`kCompactor`) or 1/2
/// (`kCompactorVllm`, the authors' constant); 0 where the profile has none.
double BlendOf(const Compression& compression);

/// Tokens kept per KV head (in the mean over a layer's heads where they differ):
/// head + (S − head)·(10⁶ − ppm) div 10⁶.
int64_t KeptTokens(int64_t context_tokens, int64_t head_tokens, uint32_t ratio_ppm);

}  // namespace docmem::engine
