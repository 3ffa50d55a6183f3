#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/model/testing.h"
#include "engine/testing.h"
#include "training/micro_batch.h"

// Gradients of peft on the same batch in the served form: tests/reference/README.md, training/.
namespace docmem::training {
namespace {

using engine::Module;
using engine::testing::Ids;
using engine::testing::Reference;
using Tensors = std::map<std::string, at::Tensor>;
using Json = nlohmann::json;

constexpr uint64_t kBudget = 1 << 24;

Module ModuleOf(const std::string& name) {
  for (int i = 0; i < engine::kModuleCount; ++i) {
    if (engine::ModuleName(static_cast<Module>(i)) == name) return static_cast<Module>(i);
  }
  throw std::invalid_argument(name);
}

// One golden case: model, adapter, examples, and what peft found.
class GoldenCase {
 public:
  explicit GoldenCase(const Json& json)
      : name_(json.at("file")),
        golden_(engine::testing::LoadTensors(Reference("training/" + name_))),
        model_(engine::testing::LoadModel(Folder(json.at("model")))),
        parameters_(model_.config(), Shape(json), at::kCPU, 0),
        prefixes_(model_, kBudget) {
    for (int i = 0; i < json.at("examples").get<int>(); ++i) {
      const auto ids = [&](const char* what) { return Ids(golden_.at(what + std::to_string(i))); };
      examples_.push_back({ids("prefix."), ids("rows."), ids("labels.")});
      labels_ += examples_.back().label_count();
    }
    const at::NoGradGuard no_gradients;
    parameters_.values().zero_();
    Visit([](const at::Tensor& weight, const at::Tensor& golden) { weight.copy_(golden); },
          "weight.");
  }

  const Tensors& golden() const { return golden_; }
  const std::string& name() const { return name_; }

  // Summed loss of a pass over examples first … first + count − 1.
  double Run(size_t first, size_t count, bool recompute) {
    std::vector<const Example*> batch;
    for (size_t i = first; i < first + count; ++i) batch.push_back(&examples_[i]);
    MicroBatch pass(model_, parameters_, &prefixes_, batch,
                    {.loss_scale = 1.0 / static_cast<double>(labels_), .recompute = recompute});
    RunPass(&pass);
    return pass.loss_sum();
  }

  size_t size() const { return examples_.size(); }
  void ZeroGradient() { parameters_.gradient().zero_(); }
  at::Tensor Gradient() const { return parameters_.gradient().clone(); }

  // The largest ‖Δg‖/‖g‖ of all matrices.
  double LargestGap() {
    double largest = 0.0;
    Visit(
        [&](const at::Tensor& weight, const at::Tensor& golden) {
          const at::Tensor gap = (weight.grad() - golden).norm() / golden.norm();
          largest = std::max(largest, gap.item<double>());
        },
        "gradient.");
    return largest;
  }

 private:
  static std::filesystem::path Folder(const std::string& model) {
    return model == "smollm2" ? *engine::testing::SmolLm2() : Reference("models/" + model);
  }

  static LoraShape Shape(const Json& json) {
    LoraShape shape{.rank = json.at("rank"),
                    .scale = json.at("alpha").get<double>() / json.at("rank").get<double>(),
                    .modules = {}};
    for (const std::string name : json.at("modules")) shape.modules.push_back(ModuleOf(name));
    return shape;
  }

  void Visit(const std::function<void(const at::Tensor&, const at::Tensor&)>& visit,
             const std::string& kind) {
    for (int64_t layer = 0; layer < model_.config().layers; ++layer) {
      const engine::LoraWeights weights = parameters_.Layer(layer, at::kFloat);
      for (const Module module : parameters_.shape().modules) {
        const std::string key =
            kind + std::to_string(layer) + "." + std::string(engine::ModuleName(module));
        if (!golden_.contains(key + ".a")) continue;
        visit(weights.At(layer, module).a, golden_.at(key + ".a"));
        visit(weights.At(layer, module).b, golden_.at(key + ".b"));
      }
    }
  }

  std::string name_;
  Tensors golden_;
  engine::Transformer model_;
  LoraParameters parameters_;
  PrefixCache prefixes_;
  std::vector<Example> examples_;
  int64_t labels_ = 0;
};

std::vector<Json> Cases() {
  std::ifstream file(Reference("training/cases.json"));
  return Json::parse(file).get<std::vector<Json>>();
}

double BoundOf(const GoldenCase& item) {
  return item.name() == "smollm2.safetensors" ? 1e-3 : 1e-4;
}

class GradientsGoldenTest : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    const Json json = Cases().at(GetParam());
    if (json.at("model") == "smollm2" && !engine::testing::SmolLm2()) {
      GTEST_SKIP() << engine::testing::kNoSmolLm2;
    }
    item_ = std::make_unique<GoldenCase>(json);
  }

  std::unique_ptr<GoldenCase> item_;
};

TEST_P(GradientsGoldenTest, OfOneBatchEqualPefts) {
  const double loss = item_->Run(0, item_->size(), /*recompute=*/false);
  EXPECT_NEAR(loss / item_->golden().at("losses").sum().item<double>(), 1.0, 1e-5);
  const double gap = item_->LargestGap();
  std::printf("%s: largest ‖Δg‖/‖g‖ %.1e\n", item_->name().c_str(), gap);
  EXPECT_LT(gap, BoundOf(*item_));
}

TEST_P(GradientsGoldenTest, OfAccumulatedMicroBatchesEqualThoseOfOneBatch) {
  item_->Run(0, item_->size(), /*recompute=*/false);
  const at::Tensor together = item_->Gradient();
  item_->ZeroGradient();
  for (size_t i = 0; i < item_->size(); ++i) {
    const double loss = item_->Run(i, 1, /*recompute=*/false);
    const double golden = item_->golden().at("losses")[static_cast<int64_t>(i)].item<double>();
    EXPECT_NEAR(loss / golden, 1.0, 1e-5) << i;
  }
  const double gap = ((item_->Gradient() - together).norm() / together.norm()).item<double>();
  std::printf("%s: accumulated against together %.1e\n", item_->name().c_str(), gap);
  EXPECT_LT(gap, 1e-5);
  EXPECT_LT(item_->LargestGap(), BoundOf(*item_));
}

TEST_P(GradientsGoldenTest, WithRecomputedActivationsAreTheSameBits) {
  item_->Run(0, item_->size(), /*recompute=*/false);
  const at::Tensor kept = item_->Gradient();
  item_->ZeroGradient();
  item_->Run(0, item_->size(), /*recompute=*/true);
  EXPECT_TRUE(at::equal(item_->Gradient(), kept));
}

INSTANTIATE_TEST_SUITE_P(All, GradientsGoldenTest, ::testing::Range<size_t>(0, 5),
                         [](const auto& test) {
                           std::string name = Cases().at(test.param).at("file");
                           name = name.substr(0, name.find('.'));
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace docmem::training
