#include "engine/model/transformer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::CausalLogits;
using testing::LoadModel;
using testing::LoadTensors;
using testing::MakeModel;
using testing::MaxDifference;
using testing::RandomLora;
using testing::Reference;

constexpr double kLogitTolerance = 1e-3;

void Print(const std::string& what, double difference) {
  std::printf("[ agreement] %-40s max |difference| %.2e\n", what.c_str(), difference);
}

class TransformerGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(TransformerGolden, WholePromptsHaveTheLogitsOfTransformers) {
  const c10::InferenceMode inference;
  const std::string name = GetParam();
  const Transformer model = LoadModel(Reference("models/" + name));
  const auto golden = LoadTensors(Reference("logits/" + name + ".safetensors"));
  const double near = MaxDifference(CausalLogits(model, golden.at("ids")), golden.at("logits"));
  const double far =
      MaxDifference(CausalLogits(model, golden.at("far_ids"), golden.at("far_positions")),
                    golden.at("far_logits"));
  Print(name + " positions 0…39", near);
  Print(name + " positions up to 60007", far);
  EXPECT_LE(near, kLogitTolerance);
  EXPECT_LE(far, kLogitTolerance);
}

// The configuration with its rotary settings in the other of transformers' two spellings.
Json RespellRope(Json config) {
  if (config.contains("rope_parameters")) {
    Json scaling = config["rope_parameters"];
    config["rope_theta"] = scaling["rope_theta"];
    scaling.erase("rope_theta");
    config["rope_scaling"] = scaling;
    config.erase("rope_parameters");
    return config;
  }
  Json parameters = config.value("rope_scaling", Json());
  parameters["rope_theta"] = config["rope_theta"];
  config["rope_parameters"] = parameters;
  config.erase("rope_theta");
  config.erase("rope_scaling");
  return config;
}

TEST_P(TransformerGolden, BothSpellingsOfTheRotarySettingsGiveTheSameBits) {
  const c10::InferenceMode inference;
  const std::filesystem::path original = Reference("models/" + std::string(GetParam()));
  const testing::TemporaryFolder folder;
  std::filesystem::copy(original, folder.path());
  const Json config =
      RespellRope(ParseJson(MappedFile::Open(original / "config.json").text(), "config.json"));
  std::filesystem::remove(folder.path() / "config.json");
  std::ofstream(folder.path() / "config.json") << config;
  const auto golden = LoadTensors(Reference("logits/" + std::string(GetParam()) + ".safetensors"));
  const auto far_logits = [&](const Transformer& model) {
    return CausalLogits(model, golden.at("far_ids"), golden.at("far_positions"));
  };
  EXPECT_TRUE(at::equal(far_logits(LoadModel(folder.path())), far_logits(LoadModel(original))));
}

TEST_P(TransformerGolden, Bf16TokensHaveNearlyTheSameLogProbabilities) {
  const c10::InferenceMode inference;
  const std::string name = GetParam();
  const Transformer model = LoadModel(Reference("models/" + name), at::kBFloat16);
  const auto golden = LoadTensors(Reference("logits/" + name + ".safetensors"));
  const at::Tensor ids = golden.at("ids");
  const at::Tensor next = ids.slice(0, 1).unsqueeze(-1);
  const auto of_next = [&](const at::Tensor& logits) {
    return at::log_softmax(logits, -1).narrow(0, 0, ids.size(0) - 1).gather(1, next);
  };
  const at::Tensor difference =
      (of_next(CausalLogits(model, ids)) - of_next(golden.at("logits"))).abs();
  Print(name + " bf16 tokens", difference.max().item<double>());
  EXPECT_LE(difference.max().item<double>(), 0.25);
  EXPECT_LE(difference.mean().item<double>(), 0.06);
}

INSTANTIATE_TEST_SUITE_P(TinyModels, TransformerGolden,
                         ::testing::Values("tiny-llama", "tiny-llama-bias", "tiny-llama-rope3",
                                           "tiny-qwen3"));

// Reads a PEFT folder as far as the golden adapters need it; the engine's own reader, which checks
// everything, stands in engine/artifacts.
LoraWeights ReadPeft(const std::string& name, const ModelConfig& model) {
  const Json config = ParseJson(
      MappedFile::Open(Reference("adapters/" + name + "/adapter_config.json")).text(), "config");
  const auto tensors = LoadTensors(Reference("adapters/" + name + "/adapter_model.safetensors"));
  LoraWeights lora;
  lora.layers.resize(static_cast<size_t>(model.layers));
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    for (int i = 0; i < kModuleCount; ++i) {
      const std::string module(ModuleName(static_cast<Module>(i)));
      const std::string key = "base_model.model.model.layers." + std::to_string(layer) +
                              (i < 4 ? ".self_attn." : ".mlp.") + module;
      if (!tensors.contains(key + ".lora_A.weight")) continue;
      double alpha = config["lora_alpha"];
      for (const auto& [pattern, value] : config["alpha_pattern"].items()) {
        if (key.ends_with(pattern)) alpha = value;
      }
      LoraPair& pair = lora.layers[static_cast<size_t>(layer)][static_cast<size_t>(i)];
      pair.a = tensors.at(key + ".lora_A.weight").to(at::kFloat);
      pair.b = tensors.at(key + ".lora_B.weight").to(at::kFloat);
      const double rank = static_cast<double>(pair.a.size(0));
      pair.scale = alpha / (config["use_rslora"] ? std::sqrt(rank) : rank);
    }
  }
  return lora;
}

TEST(TransformerLora, AdaptersHaveTheLogitsOfPeft) {
  const c10::InferenceMode inference;
  const Json adapters =
      ParseJson(MappedFile::Open(Reference("adapters/adapters.json")).text(), "adapters.json");
  ASSERT_EQ(adapters.size(), 8U);
  for (const auto& [name, base] : adapters.items()) {
    SCOPED_TRACE(name);
    const Transformer model = LoadModel(Reference("models/" + base.get<std::string>()));
    const LoraWeights lora = ReadPeft(name, model.config());
    const auto golden = LoadTensors(Reference("adapters/" + name + ".safetensors"));
    const std::vector<AdapterSpan> spans = {{&lora, 0, golden.at("ids").size(0)}};
    const double difference =
        MaxDifference(CausalLogits(model, golden.at("ids"), spans), golden.at("logits"));
    Print("adapter " + name, difference);
    EXPECT_LE(difference, kLogitTolerance);
  }
}

constexpr Module kAllModules[] = {Module::kQ,    Module::kK,  Module::kV,   Module::kO,
                                  Module::kGate, Module::kUp, Module::kDown};

class TransformerRows : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  c10::InferenceMode inference_;
  Transformer model_ = LoadModel(Reference("models/tiny-llama"), GetParam());
  at::Tensor hidden_ = model_.Embed(at::arange(3, 15));
};

TEST_P(TransformerRows, BaseRowsKeepEveryBitBesideRowsWithAnAdapter) {
  const LoraWeights lora = RandomLora(model_.config(), kAllModules, 4, GetParam(), 1);
  const std::vector<AdapterSpan> spans = {{&lora, 5, 3}};
  const Qkv plain = model_.Project(0, hidden_, {});
  const Qkv mixed = model_.Project(0, hidden_, spans);
  const at::Tensor after_plain = model_.Finish(0, hidden_, plain.q, {});
  const at::Tensor after_mixed = model_.Finish(0, hidden_, plain.q, spans);
  const at::Tensor base_rows = at::tensor({0, 1, 2, 3, 4, 8, 9, 10, 11});
  const at::Tensor changed_rows = at::tensor({5, 6, 7});
  const auto expect = [&](const at::Tensor& a, const at::Tensor& b) {
    EXPECT_TRUE(at::equal(a.index_select(0, base_rows), b.index_select(0, base_rows)));
    EXPECT_GT(MaxDifference(a.index_select(0, changed_rows), b.index_select(0, changed_rows)),
              0.05);
  };
  expect(plain.q, mixed.q);
  expect(plain.k, mixed.k);
  expect(plain.v, mixed.v);
  expect(after_plain, after_mixed);
}

TEST_P(TransformerRows, AModuleTheAdapterLacksContributesExactlyZero) {
  const Module only_value[] = {Module::kV};
  const LoraWeights lora = RandomLora(model_.config(), only_value, 4, GetParam(), 2);
  const std::vector<AdapterSpan> spans = {{&lora, 0, hidden_.size(0)}};
  const Qkv plain = model_.Project(1, hidden_, {});
  const Qkv adapted = model_.Project(1, hidden_, spans);
  EXPECT_TRUE(at::equal(plain.q, adapted.q));
  EXPECT_TRUE(at::equal(plain.k, adapted.k));
  EXPECT_GT(MaxDifference(plain.v, adapted.v), 0.05);
  EXPECT_TRUE(
      at::equal(model_.Finish(1, hidden_, plain.q, {}), model_.Finish(1, hidden_, plain.q, spans)));
}

TEST_P(TransformerRows, AdaptersOfDifferentRanksActOnTheirOwnRowsOnly) {
  const LoraWeights first = RandomLora(model_.config(), kAllModules, 2, GetParam(), 3);
  const LoraWeights second = RandomLora(model_.config(), kAllModules, 8, GetParam(), 4);
  const std::vector<AdapterSpan> both = {{&first, 0, 4}, {nullptr, 4, 2}, {&second, 6, 6}};
  const std::vector<AdapterSpan> only_first = {{&first, 0, 4}};
  const std::vector<AdapterSpan> only_second = {{&second, 6, 6}};
  const at::Tensor mixed = model_.Project(0, hidden_, both).q;
  EXPECT_TRUE(
      at::equal(mixed.narrow(0, 0, 4), model_.Project(0, hidden_, only_first).q.narrow(0, 0, 4)));
  EXPECT_TRUE(
      at::equal(mixed.narrow(0, 6, 6), model_.Project(0, hidden_, only_second).q.narrow(0, 6, 6)));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, TransformerRows, ::testing::Values(at::kFloat, at::kBFloat16));

TEST(Transformer, AddsTheBiasesOfAttentionAndMlp) {
  const c10::InferenceMode inference;
  const testing::TemporaryFolder folder;
  MakeModel(folder.path(), R"({"model_type": "llama", "vocab_size": 20, "hidden_size": 16,
      "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
      "rope_theta": 10000.0, "attention_bias": true, "mlp_bias": true})",
            at::kFloat, 5);
  const auto stored = LoadTensors(folder.path() / "model.safetensors");
  const auto linear = [&](const std::string& name, const at::Tensor& x) {
    const std::string prefix = "model.layers.0." + name;
    return at::matmul(x, stored.at(prefix + ".weight").t()) + stored.at(prefix + ".bias");
  };
  const auto norm = [&](const std::string& name, const at::Tensor& x) {
    return x / (x.pow(2).mean(-1, true) + 1e-5).sqrt() * stored.at("model.layers.0." + name);
  };
  const Transformer model = LoadModel(folder.path());
  const at::Tensor hidden = model.Embed(at::arange(5));
  const Qkv qkv = model.Project(0, hidden, {});
  const at::Tensor x = norm("input_layernorm.weight", hidden);
  EXPECT_LE(MaxDifference(qkv.q.flatten(1), linear("self_attn.q_proj", x)), 1e-5);
  EXPECT_LE(MaxDifference(qkv.k.flatten(1), linear("self_attn.k_proj", x)), 1e-5);
  EXPECT_LE(MaxDifference(qkv.v.flatten(1), linear("self_attn.v_proj", x)), 1e-5);

  const at::Tensor residual = hidden + linear("self_attn.o_proj", qkv.q.flatten(1));
  const at::Tensor y = norm("post_attention_layernorm.weight", residual);
  const at::Tensor gate = linear("mlp.gate_proj", y);
  const at::Tensor expected =
      residual + linear("mlp.down_proj", gate * gate.sigmoid() * linear("mlp.up_proj", y));
  EXPECT_LE(MaxDifference(model.Finish(0, hidden, qkv.q, {}), expected), 1e-5);
}

TEST(Transformer, IsDifferentiableThroughItsPlainOperators) {
  const Transformer model = LoadModel(Reference("models/tiny-llama"));
  LoraWeights lora = RandomLora(model.config(), kAllModules, 2, at::kFloat, 6);
  at::Tensor& a = lora.layers[0][static_cast<size_t>(Module::kV)].a;
  a.requires_grad_();
  const at::Tensor hidden = model.Embed(at::arange(4));
  const std::vector<AdapterSpan> spans = {{&lora, 1, 3}};
  const Qkv qkv = model.Project(0, hidden, spans);
  model.Finish(0, hidden, qkv.q, spans).add(qkv.v.sum()).sum().backward();
  ASSERT_TRUE(a.grad().defined());
  EXPECT_GT(a.grad().abs().max().item<double>(), 0.0);
}

}  // namespace
}  // namespace docmem::engine
