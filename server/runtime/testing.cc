#include "server/runtime/testing.h"

#include <filesystem>

namespace docmem::server {

std::shared_ptr<const engine::Engine> TinyEngine() {
  static const std::shared_ptr<const engine::Engine> engine = [] {
    engine::EngineOptions options;
    options.model_dir =
        std::filesystem::path(DOCMEM_SOURCE_DIR) / "tests/reference/models/tiny-llama";
    options.dtype = "float32";
    options.threads = 1;
    return engine::Engine::Load(options);
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
  const auto ingestion = engine->StartIngestion(engine->EncodeContext("", document, 512),
                                                {{.ratio_ppm = ratio_ppm}});
  while (!ingestion->Step()) {
  }
  return ingestion->TakeCaches().front();
}

}  // namespace docmem::server
