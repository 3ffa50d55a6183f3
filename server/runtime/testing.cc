#include "server/runtime/testing.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "engine/artifacts/mode.h"
#include "engine/formats/digest.h"
#include "engine/formats/safetensors.h"
#include "engine/kernels/huge_buffer.h"
#include "server/runtime/cache_artifact.h"

namespace docmem::server {
namespace {

const std::filesystem::path kReference =
    std::filesystem::path(DOCMEM_SOURCE_DIR) / "tests/reference";

template <class T>
T OrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

std::string MakeFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "docmem-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  return name;
}

std::unique_ptr<store::AdapterStore> OpenStore(const std::string& folder) {
  store::AdapterStoreOptions options;
  options.folder = folder;
  return OrThrow(store::AdapterStore::Open(std::move(options)));
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Gives the end-of-answer tokens logit 0, below many others: greedy decoding never chooses them.
void SilenceEndOfAnswer(const std::filesystem::path& weights) {
  const engine::SafetensorsFile file = engine::SafetensorsFile::Open(weights);
  const engine::TensorInfo& head = file.view().Get("lm_head.weight");
  const auto row_bytes = static_cast<size_t>(head.shape[1]) * engine::DTypeBytes(head.dtype);
  std::fstream out(weights, std::ios::binary | std::ios::in | std::ios::out);
  for (const size_t id : {0, 2}) {
    out.seekp(static_cast<std::streamoff>(file.view().header().payload_offset() + head.begin +
                                          id * row_bytes));
    out << std::string(row_bytes, '\0');
  }
  if (!out.flush()) throw std::runtime_error("couldn't change " + weights.string());
}

}  // namespace

std::shared_ptr<const engine::Engine> TinyEngine() {
  static const std::shared_ptr<const engine::Engine> engine = [] {
    const std::filesystem::path folder = MakeFolder();
    engine::EngineOptions options;
    options.model_dir = folder / "tiny-llama";
    std::filesystem::copy(kReference / "models/tiny-llama", options.model_dir);
    SilenceEndOfAnswer(options.model_dir / "model.safetensors");
    options.dtype = "float32";
    options.threads = 1;
    auto loaded = engine::Engine::Load(options);
    std::filesystem::remove_all(folder);
    return loaded;
  }();
  return engine;
}

std::string TinyDocument() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += "Line " + std::to_string(i) + ": the lamp in room " + std::to_string(i * 7) +
            " is lit at dusk.\n";
  }
  return text;
}

std::shared_ptr<const engine::Cache> TinyCache(const std::string& document, uint32_t ratio_ppm) {
  const auto engine = TinyEngine();
  const auto ingestion =
      engine->StartIngestion(engine->EncodeContext("", document, 512), {{.ratio_ppm = ratio_ppm}});
  while (!ingestion->Step()) {
  }
  return ingestion->TakeCaches().front();
}

engine::PeftFolder TinyAdapter(const std::string& name) {
  engine::PeftFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(kReference / "adapters" / name)) {
    const std::string file = entry.path().filename().string();
    if (file != "adapter_config.json" && file != "adapter_model.safetensors") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    folder[file] = std::string(std::istreambuf_iterator<char>(in), {});
  }
  return folder;
}

TestParts::TestParts(const MemoriesOptions& budgets)
    : folder(MakeFolder()),
      store(OpenStore(folder)),
      memories(TinyEngine(), store.get(), &loaders, &metrics, budgets),
      loop(TinyEngine(), &metrics, {}) {}

void TestParts::StopThreads() {
  loop.Stop(absl::CancelledError("the test is over"));
  executor.Close();
  loaders.Close();
}

TestParts::~TestParts() {
  StopThreads();
  store.reset();
  std::filesystem::remove_all(folder);
}

store::Document TestParts::Publish(const std::string& id, const std::vector<uint32_t>& ratios_ppm) {
  const std::string text = TinyDocument() + id;
  store::DocumentPublication publication;
  publication.key = {"default", id};
  publication.spec.text_sha256 = engine::Sha256Hex(text);
  publication.spec.text_bytes = text.size();
  publication.text = text;
  publication.row = OrThrow(store->BeginDocument(publication.key, publication.spec, 0)).row;
  for (const uint32_t ratio : ratios_ppm) {
    publication.caches.push_back(CacheArtifact(*TinyEngine(), TinyCache(text, ratio), ""));
    const store::CacheSpec& spec = publication.caches.back().spec;
    publication.document_tokens = spec.context_tokens - spec.head_tokens;
  }
  return OrThrow(store->PublishDocument(publication));
}

store::Adapter TestParts::PublishAdapter(const store::DocumentKey& document,
                                         const std::string& name) {
  const engine::PackedAdapter packed = TinyEngine()->Pack(TinyAdapter(name), 64, true);
  const std::string text_digest = OrThrow(store->GetDocument(document)).spec.text_sha256;
  store::AdapterPublication publication;
  publication.document = document;
  publication.spec.hash = packed.content_hash;
  publication.spec.scope = std::string(engine::ScopeName(engine::AdapterScope::kQuestionAndAnswer));
  publication.spec.prompt_format_digest = TinyEngine()->prompt_format().digest();
  publication.spec.text_digest = text_digest;
  publication.spec.device_bytes = engine::HugeBuffer::SizeFor(packed.file.size());
  publication.packed = store::FileFromMemory("packed.safetensors", BytesOf(packed.file));
  return OrThrow(store->PublishAdapter(publication));
}

}  // namespace docmem::server
