#include "bench/inputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <system_error>

#include "engine/artifacts/adapter_file.h"
#include "engine/kernels/huge_buffer.h"
#include "engine/model/testing.h"
#include "engine/model/transformer.h"

namespace docmem::bench {

engine::Context ContextOf(int64_t tokens) {
  engine::Context context;
  for (int64_t i = 0; i < tokens; ++i) {
    context.ids.push_back(static_cast<int32_t>(i * 7919 % 20'000 + 100));
  }
  context.head_tokens = std::min<int64_t>(20, tokens);
  return context;
}

std::vector<int32_t> PromptOf(int64_t stream) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < 44; ++i) ids.push_back(static_cast<int32_t>(500 + 37 * i + 11 * stream));
  return ids;
}

std::string AdapterFile(const engine::Engine& engine, int64_t number, int64_t rank) {
  using engine::Module;
  constexpr Module kAll[] = {Module::kQ,    Module::kK,  Module::kV,   Module::kO,
                             Module::kGate, Module::kUp, Module::kDown};
  engine::LoraWeights weights = engine::testing::RandomLora(
      engine.config(), kAll, rank, engine.transformer().dtype(), static_cast<uint64_t>(number));
  for (auto& layer : weights.layers) {
    for (engine::LoraPair& pair : layer) pair.scale = 0.01;
  }
  return engine::PackedAdapterFile(std::to_string(number), weights);
}

engine::SharedBytes Loaded(const std::string& file) {
  const auto buffer = std::make_shared<engine::HugeBuffer>(file.size());
  std::byte* const bytes = buffer->Take(file.size());
  std::ranges::copy(std::as_bytes(std::span(file)), bytes);
  return {.owner = buffer, .bytes = {bytes, file.size()}};
}

engine::SharedBytes ReadFile(const std::string& path) {
  const size_t size = std::filesystem::file_size(path);
  const auto buffer = std::make_shared<engine::HugeBuffer>(size);
  std::byte* const bytes = buffer->Take(size);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(bytes), static_cast<std::streamsize>(size))) {
    throw std::runtime_error(path + " can't be read");
  }
  return {.owner = buffer, .bytes = {bytes, size}};
}

void DropFromPageCache(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int error = file < 0 || ::fsync(file) != 0 ? errno : 0;
  if (error == 0) error = ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  if (file >= 0) ::close(file);
  if (error != 0) throw std::system_error(error, std::generic_category(), path);
}

int64_t BytesFromDisk() {
  std::ifstream counters("/proc/self/io");
  for (std::string word; counters >> word;) {
    int64_t bytes = 0;
    if (word == "read_bytes:" && counters >> bytes) return bytes;
  }
  return 0;
}

}  // namespace docmem::bench
