#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/artifacts/adapter.h"
#include "engine/artifacts/cache.h"
#include "engine/artifacts/cache_file.h"
#include "engine/artifacts/mode.h"
#include "engine/compression/profile.h"
#include "engine/model/model_identity.h"
#include "engine/text/prompt_format.h"
#include "engine/text/tokenizer.h"

namespace docmem::engine {

class Transformer;

struct EngineOptions {
  std::filesystem::path model_dir;  ///< a Hugging Face folder, see engine/model/model_config.h
  std::string device = "cpu";       ///< "cpu" or "cuda:N"
  /// "auto", "float32", "bfloat16" or "int8" (weights only), see `ResolveDtype`.
  std::string dtype = "auto";
  int threads = 0;  ///< intra-operator threads; 0: all cores
  /// Built-in name ("chatml", "llama3", "plain"), path of a JSON file, or empty: chosen from the
  /// model's own chat template.
  std::string prompt_format;
  /// File that remembers the weights' digest by path, size and modification time, so that a later
  /// start needn't read all bytes for it; empty: no memory.
  std::filesystem::path digest_memo;
};

/// A context that is ready to be prefilled.
struct Context {
  std::vector<int32_t> ids;  ///< head, then document
  int64_t head_tokens = 0;
};

/// Who makes caches. Modes that use the base model's cache make that one, and look at no adapter;
/// the others need the adapter that writes and, in `kAdapterPrefill`, scores.
struct IngestionOptions {
  Mode mode = Mode::kBase;
  std::shared_ptr<const Adapter> adapter;
};

/// One ingestion under way: prefill, scoring and eviction in units of work between decode steps.
/// Used from the thread that runs tensor work; holds the engine alive. Destroying it abandons it.
class Ingestion {
 public:
  virtual ~Ingestion() = default;

  /// Runs one unit (tens of milliseconds to a few hundred). True when finished. Throws as
  /// `Prefill::Step`; then only destruction is allowed.
  virtual bool Step() = 0;
  virtual double progress() const = 0;       ///< 0 … 1
  virtual double score_seconds() const = 0;  ///< spent in `Step` on scoring and selection

  /// After `Step` has returned true, once: one cache per compression, in order.
  virtual std::vector<std::shared_ptr<const Cache>> TakeCaches() = 0;
};

/// A loaded model with its tokenizer and prompt format. Const after construction and shared by all
/// threads; functions that compute tensors (`Ingestion::Step`, `Session::Step`) belong to the one
/// thread that runs tensor work, the rest may be called from any thread.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// `progress` (may be empty) gets 0 … 1 from the calling thread. Throws `Error`: unknown family,
  /// damaged weights, unsupported settings, each by name.
  static std::shared_ptr<const Engine> Load(const EngineOptions& options,
                                            const std::function<void(double)>& progress = {});
  ~Engine();

  const ModelConfig& config() const;
  const ModelIdentity& identity() const;
  const Tokenizer& tokenizer() const;
  const PromptFormat& prompt_format() const;
  const Transformer& transformer() const;
  uint64_t parameters() const;
  /// Memory that the weights take; what is mapped from files doesn't count.
  uint64_t weight_bytes() const;

  /// Encodes head and document apart. An empty `system_text` is the prompt format's default.
  /// Throws `kInvalidArgument` when the document is empty, isn't valid UTF-8, or when context +
  /// `reserve_tokens` exceeds the model's positions (with both numbers).
  /// `cancelled` (may be empty) is polled; true throws `kCancelled`.
  Context EncodeContext(const std::string& system_text, const std::string& document,
                        int64_t reserve_tokens, const std::function<bool()>& cancelled = {}) const;

  /// Identity that `StartIngestion` will give the cache of this context and compression.
  /// `adapter_hash` is the adapter's content hash; not looked at in modes that use the base's
  /// cache.
  CacheIdentity IdentityOf(const Context& context, const Compression& compression,
                           Mode mode = Mode::kBase, std::string_view adapter_hash = {}) const;

  /// One cache per compression. In `kBaseScoreAdapterPrefill` the base model passes over the whole
  /// context and chooses the positions, then the adapter's pass writes the KV of exactly these.
  /// Throws as `Prefill`; `kInvalidArgument` for a mode that lacks its adapter.
  std::unique_ptr<Ingestion> StartIngestion(Context context, std::vector<Compression> compressions,
                                            IngestionOptions options = {}) const;

  /// Upper bound of the bytes that ingesting a context of this length needs beside weights and
  /// results, for budgets at start.
  uint64_t IngestionPeakBytes(int64_t context_tokens) const;
  /// `Cache::bytes()` and file length (an upper bound) of a cache, before it is made.
  uint64_t CacheBytes(int64_t kept_tokens, bool int8 = false) const;
  /// Keys and values of `tokens` tokens in all layers, without eviction.
  uint64_t KvBytes(int64_t tokens) const;

  /// Decodes and checks a cache file against the running model. Any thread.
  std::shared_ptr<const Cache> LoadCache(SharedBytes file) const;

  /// See `PackAdapter`; model name and dtype are the engine's own. Any thread.
  PackedAdapter Pack(const PeftFolder& folder, uint32_t max_rank, bool allow_other_base) const;
  std::shared_ptr<const Adapter> LoadAdapter(SharedBytes packed_file) const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace docmem::engine
