#include "engine/artifacts/cache_file.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "engine/artifacts/number_text.h"
#include "engine/artifacts/sealed_file.h"
#include "engine/artifacts/tensor_bytes.h"
#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

constexpr const char* kName = "cache file";
constexpr const char* kFormatKey = "format";
constexpr const char* kFormat = "docmem-cache";
constexpr const char* kLayersKey = "layers";
constexpr const char* kKeys = "keys";
constexpr const char* kValues = "values";
constexpr const char* kOffsets = "offsets";
constexpr const char* kPositions = "positions";
constexpr const char* kKeyScales = "key_scales";
constexpr const char* kValueScales = "value_scales";

// A cache's tensors on the CPU, and the sections that refer to them: wide elements first, so that
// each is aligned without gaps.
class Sections {
 public:
  explicit Sections(const KeptRows& rows) {
    const bool int8 = rows.key_scales.defined();
    if (!int8) AddKv(rows);
    Add(kOffsets, rows.offsets);
    if (int8) {
      Add(kKeyScales, rows.key_scales);
      Add(kValueScales, rows.value_scales);
    }
    Add(kPositions, rows.positions);
    if (int8) AddKv(rows);
  }
  Sections(const Sections&) = delete;
  Sections& operator=(const Sections&) = delete;

  const std::vector<TensorSource>& sources() const { return sources_; }

 private:
  void AddKv(const KeptRows& rows) {
    Add(kKeys, rows.keys);
    Add(kValues, rows.values);
  }
  void Add(const char* name, const at::Tensor& tensor) {
    tensors_.push_back(tensor.cpu());
    sources_.push_back(SectionOf(name, tensors_.back()));
  }

  std::vector<at::Tensor> tensors_;
  std::vector<TensorSource> sources_;
};

MetadataMap Metadata(const Cache& cache) {
  MetadataMap metadata = cache.identity().Fields();
  metadata[kFormatKey] = kFormat;
  metadata[kLayersKey] = std::to_string(cache.layers());
  return metadata;
}

void RequireFormat(const MetadataMap& metadata) {
  const auto format = metadata.find(kFormatKey);
  if (format == metadata.end() || format->second != kFormat) {
    ThrowDataLoss("header", "this isn't a cache file");
  }
}

int64_t Layers(const MetadataMap& metadata, int64_t heads) {
  const auto text = metadata.find(kLayersKey);
  const auto layers = text == metadata.end() ? std::nullopt : ParseInteger(text->second);
  if (!layers || *layers < 1 || heads < 1 || heads % *layers != 0) {
    ThrowDataLoss(kLayersKey, "doesn't fit the number of offsets");
  }
  return *layers;
}

at::Tensor Section(const SafetensorsView& view, const SharedBytes& file, const char* name) {
  const TensorInfo* info = view.Find(name);
  if (info == nullptr) {
    ThrowDataLoss(name, "the cache file lacks this section");
  }
  return AliasBytes(view.Data(*info), *info, file.owner, name);
}

void RequireKvDtype(const CacheIdentity& identity, const KeptRows& rows) {
  const at::ScalarType type = rows.keys.scalar_type();
  const char* stored = type == at::kFloat      ? "float32"
                       : type == at::kBFloat16 ? "bfloat16"
                       : type == at::kChar     ? kInt8Name
                                               : "";
  if (identity.kv_dtype != stored) {
    ThrowDataLoss(kKeys, "aren't of the dtype " + identity.kv_dtype + " that the header names");
  }
}

std::shared_ptr<const Cache> Decode(const SafetensorsView& view, const SharedBytes& file,
                                    at::Device device) {
  KeptRows rows{.keys = Section(view, file, kKeys),
                .values = Section(view, file, kValues),
                .positions = Section(view, file, kPositions),
                .offsets = Section(view, file, kOffsets)};
  if (rows.keys.scalar_type() == at::kChar) {
    rows.key_scales = Section(view, file, kKeyScales).to(device);
    rows.value_scales = Section(view, file, kValueScales).to(device);
  }
  CacheIdentity identity = CacheIdentity::FromFields(view.metadata());
  RequireKvDtype(identity, rows);
  const int64_t heads = rows.offsets.numel() - 1;
  const int64_t layers = Layers(view.metadata(), heads);
  rows.keys = rows.keys.to(device);
  rows.values = rows.values.to(device);
  return std::make_shared<const Cache>(std::move(identity), layers, heads / layers,
                                       std::move(rows));
}

}  // namespace

std::string CacheFileHeader(const Cache& cache) {
  const Sections sections(cache.rows());
  return SealedHeader(sections.sources(), Metadata(cache), kCacheHeaderBytes);
}

uint64_t CacheFileBytes(const Cache& cache) {
  return CacheFileHeader(cache).size() + cache.bytes();
}

void WriteCacheFile(const Cache& cache, const ByteSink& sink) {
  const Sections sections(cache.rows());
  WriteSealedFile(sections.sources(), Metadata(cache), kCacheHeaderBytes, sink);
}

std::shared_ptr<const Cache> ReadCacheFile(SharedBytes file, at::Device device) {
  const SafetensorsView view = OpenSealedFile(file.bytes, kName);
  RequireFormat(view.metadata());
  try {
    return Decode(view, file, device);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kFailedPrecondition) {
      throw;
    }
    ThrowDataLoss(error.field(), error.what());
  }
}

CacheIdentity ReadCacheFileIdentity(std::span<const std::byte> header) {
  const MetadataMap metadata = ReadSealedMetadata(header, kName);
  RequireFormat(metadata);
  return CacheIdentity::FromFields(metadata);
}

}  // namespace docmem::engine
