// Trains on request, for `./dev bench`: one JSON object per line in, one out, as engine_worker.cc.
//   training_worker MODEL_FOLDER DTYPE THREADS [recompute]
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/worker_lines.h"
#include "engine/engine.h"
#include "training/trainer.h"

namespace docmem::training {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// The same ids as the peers get: a head that the base model writes, 32 of a question, 16 of an
// answer, of which the last row's is the end of turn.
std::vector<Example> Examples(int count) {
  std::vector<Example> examples;
  for (int number = 0; number < count; ++number) {
    Example example;
    for (int i = 0; i < 30; ++i) example.prefix_ids.push_back(i * 7919 % 20'000 + 100);
    for (int i = 0; i < 48; ++i) example.row_ids.push_back((number * 613 + i * 41) % 20'000 + 700);
    example.labels.assign(example.row_ids.begin() + 1, example.row_ids.end());
    example.labels.push_back(2);
    std::fill_n(example.labels.begin(), 32, kNoLabel);
    examples.push_back(std::move(example));
  }
  return examples;
}

Json Train(Trainer* trainer, int64_t steps) {
  const TrainingProgress before = trainer->progress();
  const auto start = Clock::now();
  while (trainer->progress().step < before.step + steps) trainer->Step();
  return {{"seconds", std::chrono::duration<double>(Clock::now() - start).count()},
          {"tokens", trainer->progress().trained_tokens - before.trained_tokens},
          {"loss", trainer->progress().loss},
          {"peak_bytes", bench::PeakBytes()}};
}

int Run(int argc, char** argv) {
  constexpr int kSequences = 8;
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: training_worker MODEL_FOLDER DTYPE THREADS [recompute]\n";
    return 2;
  }
  const auto engine =
      engine::Engine::Load({.model_dir = argv[1], .dtype = argv[2], .threads = std::stoi(argv[3])});
  Trainer trainer(engine,
                  {.rank = 16,
                   .alpha = 16.0,
                   .epochs = kMaxEpochs,
                   .batch_size = kSequences,
                   .holdout = 0.0,
                   .recompute = argc == 5},
                  Examples(kSequences));
  bench::ServeLines([&](const Json& request) {
    return request.at("measure") == "peak" ? Json{{"bytes", bench::PeakBytes()}}
                                           : Train(&trainer, request.at("steps"));
  });
  return 0;
}

}  // namespace
}  // namespace docmem::training

int main(int argc, char** argv) { return docmem::training::Run(argc, argv); }
