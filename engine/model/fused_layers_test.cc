// The CPU kernels against the plain operators, on every instruction path.
#include "engine/model/fused_layers.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "engine/model/attention.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::MaxDifference;
using testing::Reference;

constexpr Module kAll[] = {Module::kQ,    Module::kK,  Module::kV,   Module::kO,
                           Module::kGate, Module::kUp, Module::kDown};

class FusedLayersTest : public ::testing::TestWithParam<std::tuple<CpuPath, const char*>> {
 protected:
  Transformer Load(at::ScalarType dtype, bool int8_weights = false) const {
    const auto folder = Reference(std::string("models/") + std::get<1>(GetParam()));
    ModelConfig config = ModelConfig::Load(folder);
    Weights weights = LoadWeights(folder, config, {.dtype = dtype});
    return {std::move(config),
            std::move(weights),
            {.path = std::get<0>(GetParam()), .int8_weights = int8_weights}};
  }

  // The bf16 weights, computing in fp32.
  Transformer Widened() const {
    const auto folder = Reference(std::string("models/") + std::get<1>(GetParam()));
    ModelConfig config = ModelConfig::Load(folder);
    Weights weights = LoadWeights(folder, config, {.dtype = at::kBFloat16});
    const auto widen = [](at::Tensor& tensor) {
      if (tensor.defined()) tensor = tensor.to(at::kFloat);
    };
    const bool tied = weights.head.is_same(weights.embedding);
    widen(weights.embedding);
    widen(weights.final_norm);
    if (tied) {
      weights.head = weights.embedding;
    } else {
      widen(weights.head);
    }
    for (LayerWeights& layer : weights.layers) {
      for (at::Tensor* norm :
           {&layer.input_norm, &layer.post_attention_norm, &layer.q_norm, &layer.k_norm}) {
        widen(*norm);
      }
      for (at::Tensor& matrix : layer.matrix) widen(matrix);
      for (at::Tensor& bias : layer.bias) widen(bias);
    }
    return {std::move(config), std::move(weights)};
  }

  // Logits of one prompt, half of whose rows have an adapter.
  static at::Tensor Logits(const Transformer& model, bool fused) {
    const c10::InferenceMode inference(fused);
    LoraWeights lora = testing::RandomLora(model.config(), kAll, 5, at::kBFloat16, 3);
    for (auto& layer : lora.layers) {
      for (LoraPair& pair : layer) {
        pair.a = pair.a.to(model.dtype());
        pair.b = pair.b.to(model.dtype());
      }
    }
    const AdapterSpan spans[] = {{&lora, 20, 20}};
    const at::Tensor ids = at::arange(40) * 7 % model.config().vocab_size;
    EXPECT_EQ(model.fused() != nullptr, fused);
    return testing::CausalLogits(model, ids, spans);
  }
};

TEST_P(FusedLayersTest, LogitsAreThoseOfThePlainOperators) {
  const Transformer wide = Load(at::kFloat);
  EXPECT_LE(MaxDifference(Logits(wide, true), Logits(wide, false)), 1e-4);
}

TEST_P(FusedLayersTest, Bf16IsAsNearToFp32AsWithThePlainOperators) {
  const Transformer narrow = Load(at::kBFloat16);
  const at::Tensor exact = Logits(Widened(), false);
  const double fused = (Logits(narrow, true) - exact).abs().mean().item<double>();
  const double plain = (Logits(narrow, false) - exact).abs().mean().item<double>();
  EXPECT_LE(fused, 1.1 * plain);
}

TEST_P(FusedLayersTest, APrefillAttendsAsThePlainOperatorsDoInAnySlices) {
  const Transformer model = Load(at::kBFloat16);
  const c10::InferenceMode inference;
  const ModelConfig& config = model.config();
  const auto random = [&](int64_t first, int64_t second) {
    return (at::randn({first, second, config.head_dim}) / 2).to(at::kBFloat16);
  };
  const at::Tensor q = random(90, config.query_heads);
  const at::Tensor keys = random(config.kv_heads, 90), values = random(config.kv_heads, 90);
  const at::Tensor plain = AttendCausal(q, keys, values, 0).out;
  EXPECT_LE(MaxDifference(model.Attend(q, keys, values, 0), plain), 0.02);
  const at::Tensor later = model.Attend(q.narrow(0, 50, 40), keys, values, 50);
  EXPECT_LE(MaxDifference(later, plain.narrow(0, 50, 40)), 0.02);
}

TEST_P(FusedLayersTest, Int8WeightsStayNearTheExactOnes) {
  const at::Tensor exact = Logits(Load(at::kBFloat16), true);
  const at::Tensor int8 = Logits(Load(at::kBFloat16, /*int8_weights=*/true), true);
  EXPECT_GT(MaxDifference(exact, int8), 0.0);
  EXPECT_LE(MaxDifference(exact, int8), 0.2 * exact.abs().max().item<double>());
}

INSTANTIATE_TEST_SUITE_P(PathsAndModels, FusedLayersTest,
                         ::testing::Combine(::testing::ValuesIn(UsableCpuPaths()),
                                            ::testing::Values("tiny-llama", "tiny-llama-rope3",
                                                              "tiny-qwen3", "tiny-llama-bias")));

}  // namespace
}  // namespace docmem::engine
