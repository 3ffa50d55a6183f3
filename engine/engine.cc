#include "engine/engine.h"

#include <ATen/ATen.h>

#include <utility>

#include "engine/formats/error.h"
#include "engine/ingestion.h"
#include "engine/load_options.h"
#include "engine/model/transformer.h"
#include "engine/model/weights.h"

namespace docmem::engine {

class Engine::Impl {
 public:
  Transformer transformer;
  Tokenizer tokenizer;
  PromptFormat format;
  ModelIdentity identity;
};

namespace {

void RequireVocabulary(const Tokenizer& tokenizer, const ModelConfig& config) {
  if (tokenizer.vocab_size() > config.vocab_size) {
    ThrowInvalidArgument("tokenizer.json", "has ids up to " +
                                               std::to_string(tokenizer.vocab_size() - 1) +
                                               ", the model's vocabulary has " +
                                               std::to_string(config.vocab_size) + " entries");
  }
}

// A cache that claims to be this model's must have its shapes: a file from elsewhere may lie.
void RequireShapes(const Cache& cache, const ModelConfig& config) {
  if (cache.layers() != config.layers || cache.kv_heads() != config.kv_heads ||
      cache.rows().keys.size(1) != config.head_dim) {
    ThrowDataLoss("keys", "don't have the shape of the model that the header names");
  }
}

}  // namespace

std::shared_ptr<const Engine> Engine::Load(const EngineOptions& options,
                                           const std::function<void(double)>& progress) {
  const at::Device device = ParseDevice(options.device);
  const ComputeType compute = ResolveDtype(options.dtype, device);
  SetThreads(options.threads);
  ModelConfig config = ModelConfig::Load(options.model_dir);
  Tokenizer tokenizer = Tokenizer::Load(options.model_dir / "tokenizer.json");
  RequireVocabulary(tokenizer, config);
  PromptFormat format = LoadPromptFormat(options.prompt_format, options.model_dir, tokenizer);
  ModelIdentity identity = {.weights_digest = WeightsDigest(options.model_dir, options.digest_memo),
                            .config_digest = config.Digest(compute.name),
                            .tokenizer_digest = tokenizer.digest(),
                            .dtype = compute.name};
  Weights weights = LoadWeights(options.model_dir, config,
                                {.dtype = compute.dtype, .device = device, .progress = progress});
  return std::shared_ptr<const Engine>(new Engine(std::unique_ptr<Impl>(
      new Impl{.transformer = Transformer(std::move(config), std::move(weights),
                                          {.int8_weights = compute.int8_weights}),
               .tokenizer = std::move(tokenizer),
               .format = std::move(format),
               .identity = std::move(identity)})));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

const ModelConfig& Engine::config() const { return impl_->transformer.config(); }
const ModelIdentity& Engine::identity() const { return impl_->identity; }
const Tokenizer& Engine::tokenizer() const { return impl_->tokenizer; }
const PromptFormat& Engine::prompt_format() const { return impl_->format; }
const Transformer& Engine::transformer() const { return impl_->transformer; }
uint64_t Engine::parameters() const { return impl_->transformer.parameters(); }
uint64_t Engine::weight_bytes() const { return impl_->transformer.weight_bytes(); }

Context Engine::EncodeContext(const std::string& system_text, const std::string& document,
                              int64_t reserve_tokens,
                              const std::function<bool()>& cancelled) const {
  if (document.empty()) {
    ThrowInvalidArgument("document", "is empty");
  }
  Context context;
  context.ids = impl_->format.HeadIds(system_text.empty() ? impl_->format.default_system_text()
                                                          : system_text);
  context.head_tokens = static_cast<int64_t>(context.ids.size());
  const std::vector<int32_t> ids = impl_->tokenizer.EncodeUser(document, cancelled);
  context.ids.insert(context.ids.end(), ids.begin(), ids.end());
  const int64_t wanted = static_cast<int64_t>(context.ids.size()) + reserve_tokens;
  if (wanted > config().max_positions) {
    ThrowInvalidArgument("document",
                         std::to_string(context.ids.size()) + " tokens of head and document and " +
                             std::to_string(reserve_tokens) + " reserved for the question make " +
                             std::to_string(wanted) + ", the model has " +
                             std::to_string(config().max_positions) + " positions");
  }
  return context;
}

CacheIdentity Engine::IdentityOf(const Context& context, const Compression& compression, Mode mode,
                                 std::string_view adapter_hash) const {
  const std::string_view writer = UsesBaseCache(mode) ? kBaseMaker : adapter_hash;
  const std::string_view scorer = mode == Mode::kAdapterPrefill ? adapter_hash : kBaseMaker;
  return {.model = impl_->identity,
          .context_digest = ContextDigest(context.ids),
          .context_tokens = static_cast<int64_t>(context.ids.size()),
          .head_tokens = context.head_tokens,
          .ratio_ppm = compression.ratio_ppm,
          .kv_dtype = compression.int8 ? kInt8Name : DtypeName(impl_->transformer.dtype()),
          .writer = std::string(writer),
          .scorer = std::string(IsScored(compression) ? scorer : kNoMaker),
          .profile = ProfileIdentity(compression)};
}

std::unique_ptr<Ingestion> Engine::StartIngestion(Context context,
                                                  std::vector<Compression> compressions,
                                                  IngestionOptions options) const {
  return MakeIngestion(shared_from_this(), std::move(context), std::move(compressions),
                       std::move(options));
}

uint64_t Engine::IngestionPeakBytes(int64_t context_tokens) const {
  const int64_t kv_row = 2 * config().kv_heads * config().head_dim;
  const auto row = static_cast<uint64_t>(kv_row + 2 * config().hidden_size) *
                   at::elementSize(impl_->transformer.dtype());
  return static_cast<uint64_t>(context_tokens) * row * 5 / 2;
}

uint64_t Engine::CacheBytes(int64_t kept_tokens, bool int8) const {
  const auto heads = static_cast<uint64_t>(config().layers * config().kv_heads);
  const auto rows = heads * static_cast<uint64_t>(kept_tokens);
  const auto dim = static_cast<uint64_t>(config().head_dim);
  const uint64_t number = int8 ? 1 : at::elementSize(impl_->transformer.dtype());
  const uint64_t row = 2 * dim * number + sizeof(int32_t) + (int8 ? sizeof(float) : 0);
  const uint64_t scales = int8 ? heads * dim * sizeof(float) : 0;
  return kCacheHeaderBytes + rows * row + (heads + 1) * sizeof(int64_t) + scales;
}

uint64_t Engine::KvBytes(int64_t tokens) const {
  return 2 * static_cast<uint64_t>(config().layers * config().kv_heads * config().head_dim) *
         at::elementSize(impl_->transformer.dtype()) * static_cast<uint64_t>(tokens);
}

std::shared_ptr<const Cache> Engine::LoadCache(SharedBytes file) const {
  auto cache = ReadCacheFile(std::move(file), impl_->transformer.device());
  cache->identity().RequireModel(impl_->identity);
  RequireShapes(*cache, config());
  return cache;
}

PackedAdapter Engine::Pack(const PeftFolder& folder, uint32_t max_rank,
                           bool allow_other_base) const {
  return PackAdapter(folder, config(),
                     {.max_rank = max_rank,
                      .allow_other_base = allow_other_base,
                      .model_name = config().name,
                      .dtype = impl_->transformer.dtype()});
}

std::shared_ptr<const Adapter> Engine::LoadAdapter(SharedBytes packed_file) const {
  return ReadPackedAdapter(std::move(packed_file), config(), impl_->transformer.dtype(),
                           impl_->transformer.device());
}

}  // namespace docmem::engine
