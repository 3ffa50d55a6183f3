#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "training/options.h"
#include "training/qa_pair.h"

namespace docmem::training {

inline constexpr int32_t kNoLabel = -1;

/// One sequence in the form in which it is served: the base model writes `prefix_ids` at the
/// positions from 0 on, the adapter acts on the rows behind them.
struct Example {
  std::vector<int32_t> prefix_ids;  ///< not empty
  std::vector<int32_t> row_ids;     ///< fed at the positions from `prefix_ids.size()` on
  /// One per row: the id that this row's logits should predict, or `kNoLabel`. The sequence's last
  /// id is a label only: as an input it would predict nothing.
  std::vector<int32_t> labels;

  int64_t label_count() const;
};

/// A run of a document's tokens.
struct Chunk {
  int64_t first = 0;  ///< counted from the document's first token
  int64_t tokens = 0;
};

/// Tokens of a window of RAW_CONTEXT and of a chunk.
inline constexpr int64_t kChunkTokens = 512;

/// The document's tokens in as few chunks of at most `chunk_tokens` as possible, but two where
/// there are two tokens, so that there is something to continue; about equally long.
/// `document_tokens` ≥ 1.
std::vector<Chunk> CutChunks(int64_t document_tokens, int64_t chunk_tokens = kChunkTokens);

/// What examples are made from.
struct ExampleSource {
  const engine::Engine& engine;
  /// Head and document as ingestion encodes them (`Engine::EncodeContext`).
  const engine::Context& context;
  std::span<const QaPair> pairs;  ///< only for the two QA formats
  int64_t chunk_tokens = kChunkTokens;
};

/// The layouts of the four supervision formats; b marks the part that the base model writes:
///
///     SYNTHETIC_QA          [head]b [bridge, question, tail] [answer, end of turn]
///     RAW_CONTEXT           [head]b [window of the document]
///     CONTEXT_CONTINUATION  [head] [chunk i]b [chunk i + 1]
///     CONTEXT_QA            [head] [source chunk]b [bridge, question, tail] [answer, end of turn]
///
/// with the loss on the last part; the first token of a window or chunk is predicted by a base row
/// and has no label. Windows overlap by one token, so that each token of the document but the first
/// is a label exactly once. Question and answer have the ids that serving makes
/// (`PromptFormat::QuestionIds` without history and instruction, `AnswerIds`). Pure: the same
/// arguments give the same examples, in the document's or the pairs' order.
///
/// Throws `kInvalidArgument`: no pairs for a QA format, a pair with an empty question or answer or
/// an unknown chunk (by its number), a document too short to predict a token of it from another,
/// a sequence above the model's positions.
std::vector<Example> MakeExamples(Supervision supervision, const ExampleSource& source);

}  // namespace docmem::training
