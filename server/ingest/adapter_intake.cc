#include "server/ingest/adapter_intake.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "engine/engine.h"
#include "engine/kernels/huge_buffer.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"

namespace docmem::server {
namespace {

constexpr char kPackedName[] = "packed.safetensors";

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The engine writes "r=4 scale=2, r=8 scale=2" for each module; rows keep numbers.
std::string ModulesJson(const engine::AdapterDescription& description) {
  nlohmann::json modules = nlohmann::json::array();
  for (const auto& [name, settings] : description.modules) {
    const std::vector<std::string> texts = absl::StrSplit(settings, ", ");
    for (const std::string& text : texts) {
      unsigned rank = 0;
      double scale = 0;
      if (std::sscanf(text.c_str(), "r=%u scale=%lf", &rank, &scale) != 2) continue;
      modules.push_back({{"name", name}, {"rank", rank}, {"scale", scale}});
    }
  }
  return modules.dump();
}

store::AdapterSpec SpecOf(const AdapterUpload& upload, const engine::PackedAdapter& packed) {
  store::AdapterSpec spec;
  spec.hash = packed.content_hash;
  spec.scope = engine::ScopeName(upload.scope);
  spec.base_model = packed.description.base_model;
  spec.description = ModulesJson(packed.description);
  spec.max_rank = packed.description.max_rank;
  spec.prompt_format_digest = upload.prompt_format_digest;
  spec.text_digest = upload.text_digest;
  spec.training_job_id = upload.training_job_id;
  spec.device_bytes = engine::HugeBuffer::SizeFor(packed.file.size());
  return spec;
}

}  // namespace

std::vector<store::NewFile> FilesOf(const AdapterUpload& upload) {
  std::vector<store::NewFile> files;
  for (const auto& [name, bytes] : upload.files) {
    files.push_back(store::FileFromMemory(name, BytesOf(bytes)));
  }
  return files;
}

store::NewFile FileOf(const PackedUpload& packed) {
  return store::FileFromMemory(kPackedName, BytesOf(packed.file));
}

AdapterIntake::AdapterIntake(std::shared_ptr<const engine::Engine> engine,
                             store::AdapterStore* store, Residency* residency, uint32_t max_rank)
    : engine_(std::move(engine)), store_(store), residency_(residency), max_rank_(max_rank) {}

absl::StatusOr<PackedUpload> AdapterIntake::Pack(const AdapterUpload& upload) const {
  const EngineReasons reasons{.invalid_argument = reason::kAdapterInvalid,
                              .unimplemented = reason::kAdapterUnsupported,
                              .failed_precondition = reason::kAdapterOtherBase};
  absl::StatusOr<engine::PackedAdapter> packed = CatchEngine(
      [&] { return engine_->Pack(upload.files, max_rank_, upload.allow_other_base); }, reasons);
  if (!packed.ok()) return packed.status();
  store::AdapterSpec spec = SpecOf(upload, *packed);
  return PackedUpload{std::move(spec), std::move(packed->file)};
}

absl::StatusOr<store::Adapter> AdapterIntake::Publish(AdapterUpload upload) const {
  absl::StatusOr<store::Document> document = store_->GetDocument(upload.document);
  if (!document.ok()) return document.status();
  if (upload.text_digest.empty()) upload.text_digest = document->spec.text_sha256;
  if (upload.prompt_format_digest.empty()) {
    upload.prompt_format_digest = engine_->prompt_format().digest();
  }
  const absl::StatusOr<PackedUpload> packed = Pack(upload);
  if (!packed.ok()) return packed.status();

  store::AdapterPublication publication;
  publication.document = upload.document;
  publication.spec = packed->spec;
  publication.files = FilesOf(upload);
  publication.packed = FileOf(*packed);
  publication.make_current = !upload.keep_current;
  absl::StatusOr<store::Adapter> adapter = store_->PublishAdapter(publication);
  if (adapter.ok() && adapter->current && document->spec.pinned) {
    residency_->SetPins(*document, &*adapter);
  }
  return adapter;
}

}  // namespace docmem::server
