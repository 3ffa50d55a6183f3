// Encoding a megabyte of what real and hostile documents consist of:
//   DOCMEM_SMOLLM2=build/models/smollm2-135m-instruct build/release/bench/tokenizer_bench
// Without the variable a small tokenizer from tests/reference is measured.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "engine/text/tokenizer.h"

namespace docmem::engine {
namespace {

constexpr size_t kBytes = 1u << 20;

struct Input {
  const char* name;
  const char* unit;  // repeated up to kBytes
};

constexpr std::array<Input, 9> kInputs = {
    {{"letter", "a"},
     {"underscore", "_"},
     {"cjk", "\u4e2d"},
     {"space", " "},
     {"newline", "\n"},
     {"digit", "7"},
     {"base64", "aGVsbG8gd29ybGQsIHRoaXMgaXMgYQ"},
     {"marks", "a\u0301\u0323"},
     {"prose", "The harbour master counted the boats, wrote 27 into his book and went home. "}}};

const Tokenizer& TheTokenizer() {
  static const Tokenizer tokenizer = [] {
    const char* folder = std::getenv("DOCMEM_SMOLLM2");
    const std::filesystem::path source = DOCMEM_SOURCE_DIR;
    return Tokenizer::Load(folder != nullptr
                               ? std::filesystem::path(folder) / "tokenizer.json"
                               : source / "tests/reference/tokenizers/qwen-like.json");
  }();
  return tokenizer;
}

void BM_EncodeUser(benchmark::State& state) {
  const Input& input = kInputs[static_cast<size_t>(state.range(0))];
  std::string text;
  while (text.size() < kBytes) text += input.unit;
  const Tokenizer& tokenizer = TheTokenizer();
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.EncodeUser(text));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.SetLabel(input.name);
}
BENCHMARK(BM_EncodeUser)->DenseRange(0, kInputs.size() - 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace docmem::engine
