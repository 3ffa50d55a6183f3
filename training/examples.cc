#include "training/examples.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "engine/formats/error.h"
#include "training/words.h"

namespace docmem::training {
namespace {

using engine::ThrowInvalidArgument;
using Ids = std::vector<int32_t>;

void Append(Ids* ids, std::span<const int32_t> more) {
  ids->insert(ids->end(), more.begin(), more.end());
}

// The rows of `unlabelled` + `labelled` but the last, each with the id behind it as its label where
// that one belongs to `labelled` and isn't the first of all.
Example Layout(Ids prefix, const Ids& unlabelled, std::span<const int32_t> labelled) {
  Example example{.prefix_ids = std::move(prefix), .row_ids = unlabelled, .labels = {}};
  Append(&example.row_ids, labelled);
  for (size_t row = 0; row + 1 < example.row_ids.size(); ++row) {
    const bool label = row + 1 >= unlabelled.size();
    example.labels.push_back(label ? example.row_ids[row + 1] : kNoLabel);
  }
  example.row_ids.pop_back();
  return example;
}

class Maker {
 public:
  explicit Maker(const ExampleSource& source)
      : source_(source),
        head_(source.context.ids.begin(), source.context.ids.begin() + source.context.head_tokens),
        document_(std::span(source.context.ids).subspan(head_.size())) {}

  std::vector<Example> Windows() const {
    RequireTokens(2);
    std::vector<Example> examples;
    const size_t window = static_cast<size_t>(source_.chunk_tokens);
    for (size_t first = 0; first + 1 < document_.size(); first += window - 1) {
      const size_t tokens = std::min(window, document_.size() - first);
      examples.push_back(Layout(head_, {}, document_.subspan(first, tokens)));
    }
    return examples;
  }

  std::vector<Example> Continuations() const {
    RequireTokens(4);
    const std::vector<Chunk> chunks = Chunks();
    std::vector<Example> examples;
    for (size_t i = 0; i + 1 < chunks.size(); ++i) {
      // A chunk of one token has nothing to label.
      if (chunks[i + 1].tokens < 2) continue;
      examples.push_back(Layout(WithChunk(chunks[i]), {}, Tokens(chunks[i + 1])));
    }
    return examples;
  }

  std::vector<Example> Questions(bool with_chunk) const {
    if (source_.pairs.empty()) {
      ThrowInvalidArgument("qa", "there is no pair of question and answer to train on");
    }
    const std::vector<Chunk> chunks = Chunks();
    const ChunkWords words = with_chunk ? WordsOf(chunks) : ChunkWords();
    std::vector<Example> examples;
    for (size_t i = 0; i < source_.pairs.size(); ++i) {
      const QaPair& pair = source_.pairs[i];
      RequirePair(pair, i, chunks.size());
      Ids prefix = with_chunk ? WithChunk(chunks[SourceChunk(pair, words)]) : head_;
      const engine::PromptFormat& format = source_.engine.prompt_format();
      examples.push_back(Layout(std::move(prefix), format.QuestionIds({}, "", pair.question),
                                format.AnswerIds(pair.answer)));
    }
    return examples;
  }

 private:
  using ChunkWords = std::vector<std::set<std::string>>;

  std::vector<Chunk> Chunks() const {
    return CutChunks(static_cast<int64_t>(document_.size()), source_.chunk_tokens);
  }

  std::span<const int32_t> Tokens(const Chunk& chunk) const {
    return document_.subspan(static_cast<size_t>(chunk.first), static_cast<size_t>(chunk.tokens));
  }

  Ids WithChunk(const Chunk& chunk) const {
    Ids ids = head_;
    Append(&ids, Tokens(chunk));
    return ids;
  }

  ChunkWords WordsOf(const std::vector<Chunk>& chunks) const {
    ChunkWords words;
    for (const Chunk& chunk : chunks) {
      words.push_back(ContentWords(source_.engine.tokenizer().Decode(Tokens(chunk))));
    }
    return words;
  }

  static size_t SourceChunk(const QaPair& pair, const ChunkWords& words) {
    if (pair.chunk) return *pair.chunk;
    const auto wanted = ContentWords(pair.question + " " + pair.answer);
    const auto best = std::ranges::max_element(
        words, {}, [&](const std::set<std::string>& chunk) { return SharedPart(wanted, chunk); });
    return static_cast<size_t>(best - words.begin());
  }

  static void RequirePair(const QaPair& pair, size_t number, size_t chunks) {
    const std::string name = "qa[" + std::to_string(number) + "]";
    if (Normalised(pair.question).empty() || Normalised(pair.answer).empty()) {
      ThrowInvalidArgument(name, "has an empty question or answer");
    }
    if (pair.chunk && *pair.chunk >= chunks) {
      ThrowInvalidArgument(name, "names chunk " + std::to_string(*pair.chunk) +
                                     ", the document has " + std::to_string(chunks));
    }
  }

  void RequireTokens(size_t least) const {
    if (document_.size() < least) {
      ThrowInvalidArgument("document", "has " + std::to_string(document_.size()) +
                                           " tokens; to predict some of them from others takes " +
                                           std::to_string(least));
    }
  }

  const ExampleSource& source_;
  Ids head_;
  std::span<const int32_t> document_;
};

std::vector<Example> Make(Supervision supervision, const Maker& maker) {
  switch (supervision) {
    case Supervision::kSyntheticQa:
      return maker.Questions(/*with_chunk=*/false);
    case Supervision::kRawContext:
      return maker.Windows();
    case Supervision::kContextContinuation:
      return maker.Continuations();
    case Supervision::kContextQa:
      return maker.Questions(/*with_chunk=*/true);
  }
  return {};
}

}  // namespace

int64_t Example::label_count() const {
  return std::ranges::count_if(labels, [](int32_t label) { return label != kNoLabel; });
}

std::vector<Chunk> CutChunks(int64_t document_tokens, int64_t chunk_tokens) {
  const int64_t count = std::max<int64_t>(2, (document_tokens + chunk_tokens - 1) / chunk_tokens);
  const int64_t tokens = (document_tokens + count - 1) / count;
  std::vector<Chunk> chunks;
  for (int64_t first = 0; first < document_tokens; first += tokens) {
    chunks.push_back({first, std::min(tokens, document_tokens - first)});
  }
  return chunks;
}

std::vector<Example> MakeExamples(Supervision supervision, const ExampleSource& source) {
  if (source.chunk_tokens < 2) ThrowInvalidArgument("chunk_tokens", "must be at least 2");
  std::vector<Example> examples = Make(supervision, Maker(source));
  const auto positions = static_cast<size_t>(source.engine.config().max_positions);
  for (size_t i = 0; i < examples.size(); ++i) {
    const size_t tokens = examples[i].prefix_ids.size() + examples[i].row_ids.size() + 1;
    if (tokens > positions) {
      ThrowInvalidArgument("example " + std::to_string(i),
                           "has " + std::to_string(tokens) + " tokens, the model has " +
                               std::to_string(positions) + " positions");
    }
  }
  return examples;
}

}  // namespace docmem::training
