#include "engine/compression/profile.h"

#include <array>
#include <utility>

namespace docmem::engine {
namespace {

constexpr std::array<std::pair<Profile, const char*>, 5> kNames = {{
    {Profile::kCompactor, "compactor"},
    {Profile::kKnorm, "knorm"},
    {Profile::kRandom, "random"},
    {Profile::kStreaming, "streaming"},
    {Profile::kCompactorVllm, "compactor-vllm"},
}};

}  // namespace

std::string ProfileName(Profile profile) {
  for (const auto& [known, name] : kNames) {
    if (known == profile) return name;
  }
  return "";
}

std::optional<Profile> ProfileFromName(const std::string& name) {
  for (const auto& [profile, known] : kNames) {
    if (name == known) return profile;
  }
  return std::nullopt;
}

double BlendOf(const Compression& compression) {
  if (!UsesBlend(compression.profile)) return 0.0;
  if (compression.blend) return *compression.blend;
  if (compression.profile == Profile::kCompactorVllm) return 0.5;
  return static_cast<double>(compression.ratio_ppm) / static_cast<double>(kRatioOnePpm);
}

int64_t KeptTokens(int64_t context_tokens, int64_t head_tokens, uint32_t ratio_ppm) {
  const int64_t kept_ppm = int64_t{kRatioOnePpm} - int64_t{ratio_ppm};
  return head_tokens + (context_tokens - head_tokens) * kept_ppm / int64_t{kRatioOnePpm};
}

}  // namespace docmem::engine
