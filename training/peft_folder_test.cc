#include "training/peft_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "engine/model/testing.h"
#include "engine/testing.h"
#include "training/testing.h"

namespace docmem::training {
namespace {

using testing::LoadExport;
using testing::ScoredLoss;
using testing::SomeExamples;

// The loss before the last update belongs to other weights; a pass without gradients over all
// examples belongs to those that are exported.
double OwnLoss(const engine::Engine& engine, const std::vector<Example>& examples,
               const engine::LoraWeights& weights, const LoraShape& shape) {
  LoraParameters parameters(engine.config(), shape, at::kCPU, 0);
  const at::NoGradGuard no_gradients;
  for (int64_t layer = 0; layer < engine.config().layers; ++layer) {
    for (const engine::Module module : shape.modules) {
      const engine::LoraWeights own = parameters.Layer(layer, at::kFloat);
      own.At(layer, module).a.copy_(weights.At(layer, module).a);
      own.At(layer, module).b.copy_(weights.At(layer, module).b);
    }
  }
  PrefixCache prefixes(engine.transformer(), 1 << 22);
  std::vector<const Example*> pointers;
  for (const Example& example : examples) pointers.push_back(&example);
  MicroBatch pass(engine.transformer(), parameters, &prefixes, pointers, {.gradients = false});
  RunPass(&pass);
  return pass.loss_sum() / static_cast<double>(pass.labels());
}

class PeftFolderTest : public ::testing::TestWithParam<std::string> {
 protected:
  engine::PeftFolder Train(const TrainingOptions& options, const std::vector<Example>& examples) {
    Trainer trainer(engine_, options, examples);
    testing::RunUntil(&trainer, TrainingEvent::kFinished);
    return trainer.Export();
  }

  std::shared_ptr<const engine::Engine> engine_ = engine::testing::TinyEngine(GetParam());
};

TEST_P(PeftFolderTest, TheLossOfAllFormatsEqualsScoreOfTheExportedAdapter) {
  for (int i = 0; i < 4; ++i) {
    TrainingOptions options = DefaultOptions(static_cast<Supervision>(i));
    options.epochs = 8;
    options.learning_rate = 1e-2;
    const auto examples = SomeExamples(*engine_, options.supervision);
    const auto adapter = LoadExport(*engine_, Train(options, examples));
    const double scored = ScoredLoss(engine_, examples, adapter);
    const double own =
        OwnLoss(*engine_, examples, adapter->weights(),
                {.rank = options.rank, .scale = LoraScale(options), .modules = options.modules});
    EXPECT_NEAR(scored, own, 1e-5) << SupervisionName(options.supervision);
    EXPECT_GT(std::abs(scored - ScoredLoss(engine_, examples, nullptr)), 0.1);
  }
}

TEST_P(PeftFolderTest, AnUntrainedAdapterScoresAsTheBaseModel) {
  const auto examples = SomeExamples(*engine_, Supervision::kSyntheticQa);
  const Trainer trainer(engine_, {}, examples);
  EXPECT_NEAR(ScoredLoss(engine_, examples, LoadExport(*engine_, trainer.Export())),
              ScoredLoss(engine_, examples, nullptr), 1e-6);
}

TEST_P(PeftFolderTest, OptionsAreReadBackAsTheyWereTrained) {
  const TrainingOptions options{.rank = 4,
                                .alpha = 6.0,
                                .modules = {engine::Module::kV, engine::Module::kDown},
                                .rank_stabilised = true};
  const Trainer trainer(engine_, options, SomeExamples(*engine_, options.supervision));
  const auto packed = engine_->Pack(trainer.Export(), 64, false);
  EXPECT_EQ(packed.description.modules,
            (std::map<std::string, std::string>{{"v_proj", "r=4 scale=3"},
                                                {"down_proj", "r=4 scale=3"}}));
  EXPECT_EQ(packed.description.base_model, GetParam());
}

// For tests/reference/training.py FOLDER: an adapter in peft's form, and our logits with it.
TEST_P(PeftFolderTest, LogitsOfTheExportedAdapterAreFinite) {
  TrainingOptions options{.rank = 4, .epochs = 8, .learning_rate = 1e-2};
  const auto examples = SomeExamples(*engine_, options.supervision);
  const engine::PeftFolder folder = Train(options, examples);
  const auto adapter = LoadExport(*engine_, folder);
  const at::Tensor ids = at::arange(5, 45, at::kLong);
  const engine::AdapterSpan span[] = {{&adapter->weights(), 0, 40}};
  const at::Tensor logits = engine::testing::CausalLogits(engine_->transformer(), ids, span);
  EXPECT_TRUE(logits.isfinite().all().item<bool>());
  if (const char* target = std::getenv("DOCMEM_EXPORT")) {
    const auto path = std::filesystem::path(target) / GetParam();
    std::filesystem::create_directories(path);
    for (const auto& [name, bytes] : folder) std::ofstream(path / name) << bytes;
    std::ofstream(path / "base.txt") << GetParam();
    engine::testing::SaveTensors(path / "logits.safetensors", {{"ids", ids}, {"logits", logits}});
  }
}

INSTANTIATE_TEST_SUITE_P(All, PeftFolderTest, ::testing::Values("tiny-llama", "tiny-qwen3"));

}  // namespace
}  // namespace docmem::training
