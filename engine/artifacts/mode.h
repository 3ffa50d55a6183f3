#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

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

/// Who wrote a cache's KV, or chose its tokens, as identities tell it: the base model, or nobody
/// (nothing was scored); an adapter is told by its content hash.
inline constexpr std::string_view kBaseMaker = "base";
inline constexpr std::string_view kNoMaker = "none";

/// From which token of a question on the adapter is switched on, the same in all modes: the rows
/// before are the base model's, also over a cache that the adapter wrote.
enum class AdapterScope {
  kQuestionAndAnswer,  ///< from the first bridge token on
  kAnswerOnly,         ///< from the last prompt token on
};

/// Names in stored rows and messages; of an unknown name nothing.
inline constexpr std::array<std::string_view, 4> kModeNames = {
    "BASE", "BASE_KV_ADAPTER_DECODE", "ADAPTER_PREFILL", "BASE_SCORE_ADAPTER_PREFILL"};
inline constexpr std::array<std::string_view, 2> kScopeNames = {"FROM_BRIDGE", "ANSWER_ONLY"};

constexpr std::string_view ModeName(Mode mode) { return kModeNames[static_cast<size_t>(mode)]; }

constexpr std::string_view ScopeName(AdapterScope scope) {
  return kScopeNames[static_cast<size_t>(scope)];
}

constexpr std::optional<Mode> ModeFromName(std::string_view name) {
  for (size_t i = 0; i < kModeNames.size(); ++i) {
    if (kModeNames[i] == name) return static_cast<Mode>(i);
  }
  return std::nullopt;
}

constexpr std::optional<AdapterScope> ScopeFromName(std::string_view name) {
  for (size_t i = 0; i < kScopeNames.size(); ++i) {
    if (kScopeNames[i] == name) return static_cast<AdapterScope>(i);
  }
  return std::nullopt;
}

}  // namespace docmem::engine
