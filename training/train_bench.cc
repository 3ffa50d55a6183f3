// Measures trained tokens per second (rows that go forward and backward) on SmolLM2 in bf16, where
// DOCMEM_SMOLLM2 names it, else on a tiny model: run build/release/bench/train_bench. Arguments:
// sequences per micro-batch, recomputation.
#include <benchmark/benchmark.h>

#include "engine/model/testing.h"
#include "engine/testing.h"
#include "training/testing.h"

namespace docmem::training {
namespace {

std::shared_ptr<const engine::Engine> LoadEngine() {
  const auto model = engine::testing::SmolLm2();
  if (!model) return engine::testing::TinyEngine("tiny-llama", "bfloat16");
  return engine::Engine::Load({.model_dir = *model, .dtype = "bfloat16"});
}

// One step of the QA format.
void TrainStep(benchmark::State& state) {
  const auto engine = LoadEngine();
  const auto batch = static_cast<uint32_t>(state.range(0));
  Trainer trainer(engine,
                  {.epochs = kMaxEpochs, .batch_size = batch, .recompute = state.range(1) != 0},
                  testing::SomeExamples(*engine, Supervision::kSyntheticQa, batch));
  testing::RunUntil(&trainer, TrainingEvent::kStep);
  const uint64_t before = trainer.progress().trained_tokens;
  for (auto _ : state) testing::RunUntil(&trainer, TrainingEvent::kStep);
  state.SetItemsProcessed(static_cast<int64_t>(trainer.progress().trained_tokens - before));
}
BENCHMARK(TrainStep)
    ->Args({1, 0})
    ->Args({8, 0})
    ->Args({8, 1})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace docmem::training
