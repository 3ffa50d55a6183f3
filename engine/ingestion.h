#pragma once

#include <memory>
#include <vector>

#include "engine/engine.h"

namespace docmem::engine {

/// The base model's ingestion; see `Engine::StartIngestion`.
std::unique_ptr<Ingestion> MakeIngestion(std::shared_ptr<const Engine> engine, Context context,
                                         std::vector<Compression> compressions);

}  // namespace docmem::engine
