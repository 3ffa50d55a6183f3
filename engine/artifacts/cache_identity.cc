#include "engine/artifacts/cache_identity.h"

#include <array>
#include <bit>
#include <utility>

#include "engine/artifacts/number_text.h"
#include "engine/formats/digest.h"

namespace docmem::engine {
namespace {

constexpr const char* kContextDigest = "context_digest";
constexpr const char* kContextTokens = "context_tokens";
constexpr const char* kConfigDigest = "config_digest";
constexpr const char* kDtype = "dtype";
constexpr const char* kFormatVersion = "format_version";
constexpr const char* kHeadTokens = "head_tokens";
constexpr const char* kKvDtype = "kv_dtype";
constexpr const char* kProfile = "profile";
constexpr const char* kRatioPpm = "ratio_ppm";
constexpr const char* kScorer = "scorer";
constexpr const char* kTokenizerDigest = "tokenizer_digest";
constexpr const char* kWeightsDigest = "weights_digest";
constexpr const char* kWriter = "writer";

const std::string& Text(const MetadataMap& fields, const char* name) {
  const auto found = fields.find(name);
  if (found == fields.end() || found->second.empty()) {
    ThrowDataLoss(name, "the cache file's identity lacks this field");
  }
  return found->second;
}

int64_t Integer(const MetadataMap& fields, const char* name, int64_t min, int64_t max) {
  const std::string& text = Text(fields, name);
  const auto value = ParseInteger(text);
  if (!value || *value < min || *value > max) {
    ThrowDataLoss(name, text.substr(0, 40) + " isn't a number from " + std::to_string(min) +
                            " to " + std::to_string(max));
  }
  return *value;
}

void RequireVersion(const MetadataMap& fields) {
  const int64_t version = Integer(fields, kFormatVersion, 0, INT32_MAX);
  if (version != kCacheFormatVersion) {
    ThrowFailedPrecondition(kFormatVersion, "the cache file has format version " +
                                                std::to_string(version) + ", this program reads " +
                                                std::to_string(kCacheFormatVersion) +
                                                "; build the cache again (BuildCache)");
  }
}

}  // namespace

MetadataMap CacheIdentity::Fields() const {
  return {{kContextDigest, context_digest},
          {kContextTokens, std::to_string(context_tokens)},
          {kConfigDigest, model.config_digest},
          {kDtype, model.dtype},
          {kFormatVersion, std::to_string(format_version)},
          {kHeadTokens, std::to_string(head_tokens)},
          {kKvDtype, kv_dtype},
          {kProfile, profile},
          {kRatioPpm, std::to_string(ratio_ppm)},
          {kScorer, scorer},
          {kTokenizerDigest, model.tokenizer_digest},
          {kWeightsDigest, model.weights_digest},
          {kWriter, writer}};
}

CacheIdentity CacheIdentity::FromFields(const MetadataMap& fields) {
  RequireVersion(fields);
  CacheIdentity identity;
  identity.model.weights_digest = Text(fields, kWeightsDigest);
  identity.model.config_digest = Text(fields, kConfigDigest);
  identity.model.tokenizer_digest = Text(fields, kTokenizerDigest);
  identity.model.dtype = Text(fields, kDtype);
  identity.context_digest = Text(fields, kContextDigest);
  identity.context_tokens = Integer(fields, kContextTokens, 1, INT32_MAX);
  identity.head_tokens = Integer(fields, kHeadTokens, 0, identity.context_tokens);
  identity.ratio_ppm = static_cast<uint32_t>(Integer(fields, kRatioPpm, 0, kRatioOnePpm));
  identity.kv_dtype = Text(fields, kKvDtype);
  identity.writer = Text(fields, kWriter);
  identity.scorer = Text(fields, kScorer);
  identity.profile = Text(fields, kProfile);
  return identity;
}

std::string CacheIdentity::Digest() const {
  Sha256 digest;
  for (const auto& [name, value] : Fields()) {
    digest.Update(name + "=" + value + "\n");
  }
  return digest.Hex();
}

void CacheIdentity::RequireModel(const ModelIdentity& running) const {
  const std::array<std::pair<const char*, std::string ModelIdentity::*>, 4> fields = {
      {{kDtype, &ModelIdentity::dtype},
       {kWeightsDigest, &ModelIdentity::weights_digest},
       {kConfigDigest, &ModelIdentity::config_digest},
       {kTokenizerDigest, &ModelIdentity::tokenizer_digest}}};
  for (const auto& [name, member] : fields) {
    if (model.*member != running.*member) {
      ThrowFailedPrecondition(name, "the cache was made with " + model.*member +
                                        ", the running model has " + running.*member +
                                        "; start the model that made it, or build the cache again "
                                        "(BuildCache)");
    }
  }
}

void CacheIdentity::RequireAdapter(std::string_view adapter_hash) const {
  for (const std::string* maker : {&writer, &scorer}) {
    if (*maker != kBaseMaker && *maker != kNoMaker && *maker != adapter_hash) {
      ThrowFailedPrecondition(
          "adapter", "the cache was made with the adapter " + *maker + ", the request has " +
                         (adapter_hash.empty() ? "none" : std::string(adapter_hash)) +
                         "; use that adapter, or a cache of the base model or of this adapter "
                         "(BuildCache)");
    }
  }
}

std::string ContextDigest(std::span<const int32_t> context_ids) {
  static_assert(std::endian::native == std::endian::little);
  return Sha256Hex(std::as_bytes(context_ids));
}

std::string ProfileIdentity(const Compression& compression) {
  if (!IsScored(compression)) {
    return "none";
  }
  std::string text = ProfileName(compression.profile);
  const std::string blend = ";blend=" + NumberText(BlendOf(compression));
  const std::string seed = ";seed=" + std::to_string(compression.seed);
  switch (compression.profile) {
    case Profile::kCompactor:
      text += ";first=8;last=4;sketch=48;chunk=256;pool=3" + blend + seed;
      break;
    case Profile::kCompactorVllm:
      text += ";first=16;last=64;sketch=48;jitter=0.005;leverage=512;attention=128" + blend + seed;
      break;
    case Profile::kRandom:
      text += seed;
      break;
    default:
      break;
  }
  return text;
}

}  // namespace docmem::engine
