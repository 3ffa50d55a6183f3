#include "engine/compression/scorer.h"

#include "engine/compression/scorer_compactor.h"
#include "engine/formats/error.h"

namespace docmem::engine {

Protection ProtectionOf(Profile profile, int64_t context_tokens, int64_t head_tokens) {
  if (profile == Profile::kCompactor) {
    return Protect(context_tokens, head_tokens, kCompactorFirstTokens, kCompactorLastTokens);
  }
  ThrowUnimplemented("profile",
                     "\"" + ProfileName(profile) + "\" isn't implemented; use \"compactor\"");
}

std::unique_ptr<Scorer> MakeScorer(const ModelConfig& model, const ScorerOptions& options) {
  const Protection protection =
      ProtectionOf(options.profile, options.context_tokens, options.head_tokens);
  return std::make_unique<CompactorScorer>(model, protection, options);
}

}  // namespace docmem::engine
