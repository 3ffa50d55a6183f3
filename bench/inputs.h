// What the engine is measured on: made up, and the same in every run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/artifacts/shared_bytes.h"
#include "engine/engine.h"

namespace docmem::bench {

/// The same ids as the peers get; the head is 20 tokens, or all where there are fewer.
engine::Context ContextOf(int64_t tokens);

/// 44 ids, with the head of 20 a prompt of 64; each stream has one of its own.
std::vector<int32_t> PromptOf(int64_t stream);

/// A packed adapter on all modules, in the engine's dtype; each number has weights of its own.
std::string AdapterFile(const engine::Engine& engine, int64_t number, int64_t rank);

/// A copy of a file's bytes in the kind of buffer that the daemon loads into.
engine::SharedBytes Loaded(const std::string& file);

/// The file at `path`, read into such a buffer. Throws `std::runtime_error`.
engine::SharedBytes ReadFile(const std::string& path);

/// Writes the file out and drops it from the page cache, so that it is read from the disk next; a
/// file system in memory (tmpfs) keeps it. Throws `std::system_error`.
void DropFromPageCache(const std::string& path);

/// Bytes that this process has caused to be read from disks so far.
int64_t BytesFromDisk();

}  // namespace docmem::bench
