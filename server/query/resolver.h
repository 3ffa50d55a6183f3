#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "adapter_store/adapter_store.h"
#include "engine/engine.h"
#include "server/query/question.h"

namespace docmem::server {

/// A question with everything that the registry decides fixed: from here on nothing is looked up
/// again, so a later change of the document's current adapter doesn't touch it.
struct ResolvedQuestion {
  store::DocumentKey document;
  engine::Mode mode = engine::Mode::kBase;
  /// Unset: no cache matches and the question asked to build one of `ratio_ppm` and `profile`.
  std::optional<store::Cache> cache;
  uint32_t ratio_ppm = 0;
  engine::Profile profile = engine::Profile::kCompactor;
  std::optional<store::Adapter> adapter;
  engine::AdapterScope scope = engine::AdapterScope::kQuestionAndAnswer;
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> answer_ids;  ///< of the answer to score; else empty
};

/// Looks up document (routing where none is named), cache and adapter, decides the mode, and
/// encodes the prompt. Blocks on the registry: never from an RPC reactor or the engine thread.
/// Errors as the Ask RPC lists them; what doesn't fit together is refused here, before any load.
class Resolver {
 public:
  Resolver(std::shared_ptr<const engine::Engine> engine, store::AdapterStore* store)
      : engine_(std::move(engine)), store_(store) {}

  absl::StatusOr<ResolvedQuestion> Resolve(const Question& question) const;

 private:
  absl::StatusOr<store::DocumentKey> ChooseDocument(const Question& question) const;
  absl::StatusOr<engine::Mode> DecideMode(const Question& question,
                                          const store::Document& document) const;
  absl::Status EncodePrompt(const Question& question, ResolvedQuestion& resolved) const;
  absl::Status CheckLength(const Question& question, const ResolvedQuestion& resolved) const;

  const std::shared_ptr<const engine::Engine> engine_;
  store::AdapterStore* const store_;
};

}  // namespace docmem::server
