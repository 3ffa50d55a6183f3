#include "server/runtime/cache_artifact.h"

#include <span>
#include <utility>

#include "engine/artifacts/cache_file.h"
#include "engine/formats/digest.h"
#include "engine/kernels/huge_buffer.h"
#include "server/errors/from_exception.h"

namespace docmem::server {
namespace {

// Carries a status of the writer through the engine's sink, which can only throw.
struct AppendFailed {
  absl::Status status;
};

absl::Status WriteTo(store::ArtifactWriter& writer, const engine::Cache& cache) {
  try {
    engine::WriteCacheFile(cache, [&writer](std::span<const std::byte> bytes) {
      if (absl::Status status = writer.Append(bytes); !status.ok()) throw AppendFailed{status};
    });
    return absl::OkStatus();
  } catch (const AppendFailed& failed) {
    return failed.status;
  } catch (...) {
    return StatusFromException(std::current_exception());
  }
}

// A row says nothing of makers that are no adapter.
std::string AdapterHash(const std::string& maker) {
  return maker == engine::kBaseMaker || maker == engine::kNoMaker ? "" : maker;
}

}  // namespace

store::CacheSpec CacheSpecOf(const engine::Engine& engine, const engine::Cache& cache) {
  const engine::CacheIdentity& identity = cache.identity();
  const auto fields = identity.Fields();
  return {.id = identity.Digest(),
          .identity = {fields.begin(), fields.end()},
          .ratio_ppm = identity.ratio_ppm,
          // Constants and seed follow the name.
          .profile = identity.profile.substr(0, identity.profile.find(';')),
          .kv_dtype = identity.kv_dtype,
          .writer_adapter_hash = AdapterHash(identity.writer),
          .scorer_adapter_hash = AdapterHash(identity.scorer),
          .head_tokens = static_cast<uint32_t>(identity.head_tokens),
          .context_tokens = static_cast<uint32_t>(identity.context_tokens),
          .kept_tokens = static_cast<uint32_t>(cache.kept_tokens()),
          .device_bytes = engine::HugeBuffer::SizeFor(engine::CacheFileBytes(cache)),
          .full_bytes = engine.KvBytes(identity.context_tokens)};
}

store::NewCache CacheArtifact(const engine::Engine& engine,
                              std::shared_ptr<const engine::Cache> cache,
                              const std::string& system_text) {
  store::NewCache artifact;
  artifact.spec = CacheSpecOf(engine, *cache);
  artifact.spec.system_text = system_text;
  artifact.spec.system_text_digest = engine::Sha256Hex(
      system_text.empty() ? engine.prompt_format().default_system_text() : system_text);
  artifact.file.name = kCacheFileName;
  artifact.file.max_bytes = engine::CacheFileBytes(*cache);
  artifact.file.producer = [cache = std::move(cache)](store::ArtifactWriter& writer) {
    return WriteTo(writer, *cache);
  };
  return artifact;
}

}  // namespace docmem::server
