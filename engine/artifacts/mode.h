#pragma once

namespace docmem::engine {

/// Who prefills the context, who scores it for eviction, and who decodes (arXiv 2606.05698).
enum class Mode {
  kBase,                     ///< the base model alone
  kBaseKvAdapterDecode,      ///< base writes and scores, the adapter decodes
  kAdapterPrefill,           ///< the adapter writes, scores and decodes
  kBaseScoreAdapterPrefill,  ///< base scores, the adapter writes and decodes
};

/// Whether the mode reads a cache that the base model wrote and scored.
constexpr bool UsesBaseCache(Mode mode) {
  return mode == Mode::kBase || mode == Mode::kBaseKvAdapterDecode;
}

constexpr bool UsesAdapter(Mode mode) { return mode != Mode::kBase; }

/// From which token on the adapter is switched on.
enum class AdapterScope {
  kQuestionAndAnswer,  ///< from the first bridge token on
  kAnswerOnly,         ///< from the last prompt token on
};

}  // namespace docmem::engine
