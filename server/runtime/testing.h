#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"

namespace docmem::server {

/// For tests: the tiny model of tests/reference, loaded once per process, in fp32.
std::shared_ptr<const engine::Engine> TinyEngine();

/// A short document, the same at every call.
std::string TinyDocument();

/// A cache of `document`, ingested on the calling thread.
std::shared_ptr<const engine::Cache> TinyCache(const std::string& document, uint32_t ratio_ppm);

}  // namespace docmem::server
