#pragma once

#include <memory>
#include <vector>

#include "engine/engine.h"

namespace docmem::engine {

/// See `Engine::StartIngestion`.
std::unique_ptr<Ingestion> MakeIngestion(std::shared_ptr<const Engine> engine, Context context,
                                         std::vector<Compression> compressions,
                                         IngestionOptions options);

}  // namespace docmem::engine
