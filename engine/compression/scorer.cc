#include "engine/compression/scorer.h"

#include "engine/compression/scorer_compactor.h"
#include "engine/compression/scorer_compactor_vllm.h"
#include "engine/compression/scorer_knorm.h"
#include "engine/compression/scorer_random.h"
#include "engine/compression/scorer_streaming.h"

namespace docmem::engine {

Protection ProtectionOf(Profile profile, int64_t context_tokens, int64_t head_tokens) {
  switch (profile) {
    case Profile::kCompactor:
      return Protect(context_tokens, head_tokens, kCompactorFirstTokens, kCompactorLastTokens);
    case Profile::kCompactorVllm:
      return Protect(context_tokens, head_tokens, kVllmFirstTokens, kVllmLastTokens);
    default:
      return Protect(context_tokens, head_tokens, 0, 0);
  }
}

Selector SelectorOf(Profile profile) {
  return profile == Profile::kCompactorVllm ? &SelectOverHeads : &SelectPerHead;
}

std::unique_ptr<Scorer> MakeScorer(const ModelConfig& model, const ScorerOptions& options) {
  const Protection protection =
      ProtectionOf(options.profile, options.context_tokens, options.head_tokens);
  switch (options.profile) {
    case Profile::kKnorm:
      return std::make_unique<KnormScorer>(model, protection, options);
    case Profile::kRandom:
      return std::make_unique<RandomScorer>(model, protection, options);
    case Profile::kStreaming:
      return std::make_unique<StreamingScorer>(model, protection, options);
    case Profile::kCompactorVllm:
      return std::make_unique<CompactorVllmScorer>(model, protection, options);
    default:
      return std::make_unique<CompactorScorer>(model, protection, options);
  }
}

}  // namespace docmem::engine
