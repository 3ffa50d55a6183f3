// Decoding speed of 1 to 32 streams on one document. On SmolLM2-135M-Instruct where DOCMEM_SMOLLM2
// names its folder, else on the tiny model:
//   DOCMEM_SMOLLM2=build/models/smollm2-135m-instruct build/release/bench/decode_bench
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include "engine/model/testing.h"
#include "engine/testing.h"

namespace docmem::engine {
namespace {

std::shared_ptr<const Engine> BenchEngine(const std::string& dtype) {
  const auto folder = testing::SmolLm2();
  return Engine::Load(
      {.model_dir = folder.value_or(testing::Reference("models/tiny-llama")), .dtype = dtype});
}

// Args: streams, 1 for bf16.
void DecodeStep(benchmark::State& state) {
  const auto engine = BenchEngine(state.range(1) == 1 ? "bfloat16" : "float32");
  std::string document;
  for (int i = 0; i < 20; ++i) {
    document += "Line " + std::to_string(i) + " of a document that goes on for a while.\n";
  }
  const auto cache = testing::Ingest(*engine, engine->EncodeContext("", document, 0), {});
  Session session(engine);
  const auto add = [&] {
    session.Add({.cache = cache,
                 .prompt_ids = engine->prompt_format().QuestionIds({}, "", "Retell all of it."),
                 .max_tokens = 2'000});
  };
  for (int64_t i = 0; i < state.range(0); ++i) {
    add();
  }
  int64_t tokens = 0;
  session.Step();
  for (auto _ : state) {
    for (const SequenceEvent& event : session.Step()) {
      tokens += static_cast<int64_t>(event.token_ids.size());
      if (event.finish) {
        add();
      }
    }
  }
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsRate);
}
BENCHMARK(DecodeStep)
    ->ArgsProduct({{1, 2, 8, 32}, {0, 1}})
    ->ArgNames({"streams", "bf16"})
    ->Iterations(32)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace docmem::engine
