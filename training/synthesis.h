#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/session.h"
#include "training/examples.h"
#include "training/qa_pair.h"

namespace docmem::training {

struct SynthesisOptions {
  int64_t pairs = 0;  ///< wanted
  uint64_t seed = 0;
  int64_t chunk_tokens = kChunkTokens;
};

/// What has become of the questions that were asked for. Once all are done,
/// `drafts` = `kept` + `empty` + `duplicates` + `ungrounded`.
struct SynthesisCounts {
  int64_t drafts = 0;  ///< questions asked for
  int64_t kept = 0;
  int64_t empty = 0;  ///< no question mark in the draft, no answer, or an answer without an end
  int64_t duplicates = 0;  ///< questions that were there already, but for case and punctuation
  int64_t ungrounded = 0;  ///< answers whose words aren't in the chunk
};

/// The base model writes question–answer pairs on a document: for one chunk after the other it is
/// asked for some questions (synthesis_prompt.h; sampled, by the seed) and then answers each with
/// the chunk in view. Goes round the chunks until there are as many pairs as wanted or three rounds
/// are over, so there may be fewer. A pure function of its arguments where decoding is
/// batch-invariant (CPU).
///
/// Work comes in units: one step of an ingestion or of a session of its own. Used from the thread
/// that runs tensor work. Holds the engine alive.
class Synthesis {
 public:
  /// `context`: head and document as `Engine::EncodeContext` gives them. `known` are questions that
  /// mustn't come again, such as the user's own. Throws `kInvalidArgument` for a document without
  /// tokens.
  Synthesis(std::shared_ptr<const engine::Engine> engine, engine::Context context,
            SynthesisOptions options, const std::vector<std::string>& known = {});
  ~Synthesis();
  Synthesis(const Synthesis&) = delete;
  Synthesis& operator=(const Synthesis&) = delete;

  /// Runs one unit; true when finished. Throws what ingestion and session throw.
  bool Step();

  const SynthesisCounts& counts() const { return counts_; }
  double progress() const;  ///< 0 … 1
  /// Pairs so far, by round, chunk and question, each with its chunk.
  const std::vector<QaPair>& pairs() const { return pairs_; }

 private:
  enum class Stage { kChunk, kIngest, kQuestions, kAnswers, kDone };
  // One question under way.
  struct Draft {
    std::string question;
    std::string answer;
    bool ended = false;  // by the model itself
  };

  void NextChunk();
  void Ingest();
  void AskForQuestions();
  void AskQuestions();
  void Judge();
  void RunSession();
  bool KeepQuestion(const std::string& draft, std::string* question);

  std::shared_ptr<const engine::Engine> engine_;
  const engine::Context context_;
  const SynthesisOptions options_;
  const std::vector<Chunk> chunks_;
  SynthesisCounts counts_;
  std::vector<QaPair> pairs_;
  std::set<std::string> known_;  // normalised questions

  Stage stage_ = Stage::kChunk;
  int64_t visits_ = 0;  // chunks visited, over all rounds
  size_t chunk_ = 0;
  std::unique_ptr<engine::Ingestion> ingestion_;
  std::shared_ptr<const engine::Cache> cache_;
  engine::Session session_;
  std::map<engine::SequenceId, size_t> running_;  // → index of `drafts_`
  std::vector<Draft> drafts_;
};

}  // namespace docmem::training
