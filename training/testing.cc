#include "training/testing.h"

#include <algorithm>
#include <span>

#include "engine/session.h"
#include "engine/testing.h"

namespace docmem::training::testing {

const char* const kDocument =
    "Maria Lopez founded the harbour museum in 1911. It owns forty ships, most of them of wood. "
    "The largest is the Aurora, built by Henrik Dahl in 1874. Visitors come on Sundays from May to "
    "October, and a guide tells them of the storms that sank the Aurora's sisters.";

std::vector<QaPair> SomePairs(size_t count) {
  std::vector<QaPair> pairs;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    pairs.push_back({.question = "What has the number " + number + " in the museum?",
                     .answer = "Ship " + number + std::string(i % 4, '!')});
  }
  return pairs;
}

std::vector<Example> SomeExamples(const engine::Engine& engine, Supervision supervision,
                                  size_t pairs) {
  const engine::Context context = engine.EncodeContext("", kDocument, 0);
  return MakeExamples(
      supervision,
      {.engine = engine, .context = context, .pairs = SomePairs(pairs), .chunk_tokens = 32});
}

TrainingEvent RunUntil(Trainer* trainer, TrainingEvent event) {
  while (true) {
    const TrainingEvent now = trainer->Step();
    if (now == event || now == TrainingEvent::kFinished) return now;
  }
}

std::shared_ptr<const engine::Adapter> LoadExport(const engine::Engine& engine,
                                                  const engine::PeftFolder& folder) {
  const auto file = std::make_shared<const std::string>(
      engine.Pack(folder, kMaxTrainedRank, /*allow_other_base=*/false).file);
  return engine.LoadAdapter({.owner = file, .bytes = std::as_bytes(std::span(*file))});
}

double ScoredLoss(const std::shared_ptr<const engine::Engine>& engine,
                  const std::vector<Example>& examples,
                  const std::shared_ptr<const engine::Adapter>& adapter) {
  double sum = 0.0;
  double labels = 0.0;
  for (const Example& example : examples) {
    const engine::Context context{.ids = example.prefix_ids,
                                  .head_tokens = static_cast<int64_t>(example.prefix_ids.size())};
    const auto first =
        std::ranges::find_if(example.labels, [](int32_t label) { return label != kNoLabel; });
    const auto prompt = first - example.labels.begin() + 1;
    const auto answer = engine::testing::RunAlone(
        engine, {.cache = engine::testing::Ingest(*engine, context, {.ratio_ppm = 0}),
                 .adapter = adapter,
                 .prompt_ids = {example.row_ids.begin(), example.row_ids.begin() + prompt},
                 .answer_ids = {first, example.labels.end()}});
    for (const float logprob : answer.logprobs) sum -= static_cast<double>(logprob);
    labels += static_cast<double>(answer.logprobs.size());
  }
  return sum / labels;
}

}  // namespace docmem::training::testing
