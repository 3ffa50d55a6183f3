#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/artifacts/adapter.h"
#include "engine/artifacts/testing.h"
#include "engine/formats/json_fields.h"

namespace docmem::engine {
namespace {

using testing::PeftFiles;
using testing::SmallModel;
using testing::SomeAdapter;

const std::string kQ0 = "base_model.model.model.layers.0.self_attn.q_proj";

struct Refusal {
  ErrorKind kind = ErrorKind::kNotFound;
  std::string text = "accepted";
};

Refusal PackFolder(const PeftFolder& folder, bool allow_other_base = false) {
  try {
    PackAdapter(folder, SmallModel(),
                {.max_rank = 64, .allow_other_base = allow_other_base, .model_name = "small"});
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

PeftFiles QueryAdapter() { return SomeAdapter(SmallModel(), {"self_attn.q_proj"}, 4); }

// The adapter with one key of its configuration set.
Refusal WithKey(const std::string& key, const std::string& value) {
  PeftFiles files = QueryAdapter();
  Json config = Json::parse(files.config);
  config[key] = Json::parse(value);
  files.config = config.dump();
  return PackFolder(files.Folder());
}

Refusal WithTensors(const std::function<void(std::map<std::string, at::Tensor>&)>& change) {
  PeftFiles files = QueryAdapter();
  change(files.tensors);
  return PackFolder(files.Folder());
}

void ExpectRefused(const Refusal& refusal, ErrorKind kind, const std::string& mention) {
  EXPECT_EQ(ErrorKindName(refusal.kind), std::string(ErrorKindName(kind))) << refusal.text;
  EXPECT_NE(refusal.text.find(mention), std::string::npos)
      << "'" << mention << "' isn't in: " << refusal.text;
}

TEST(AdapterRefusalTest, FeaturesThatChangeTheForwardPassAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"use_dora", "true"},
      {"use_qalora", "true"},
      {"use_bdlora", R"({"n": 1})"},
      {"kasa_config", R"({"beta": 1})"},
      {"velora_config", R"({"scale": 1})"},
      {"monteclora_config", R"({"num_samples": 8})"},
      {"arrow_config", R"({"top_k": 3})"},
      {"use_gks", "true"},
      {"layer_replication", "[[0, 2]]"},
      {"lora_bias", "true"},
      {"trainable_token_indices", "[1]"},
      {"target_parameters", R"(["w"])"},
      {"megatron_config", R"({"a": 1})"},
      {"fan_in_fan_out", "true"},
      {"bias", R"("lora_only")"},
      {"bias", R"("all")"},
      {"modules_to_save", R"(["lm_head"])"},
      {"alora_invocation_tokens", "[5]"},
      {"loftq_config", R"({"loftq_bits": 4})"},
      {"corda_config", R"({"corda_method": "ipm"})"},
      {"lora_ga_config", R"({"scale": "stable"})"},
      {"ensure_weight_tying", "true"},
      {"peft_type", R"("IA3")"},
      {"task_type", R"("SEQ_CLS")"},
      {"some_future_switch", "1"},
      {"some_future_switch", R"("on")"}};
  for (const auto& [key, value] : cases) {
    ExpectRefused(WithKey(key, value), ErrorKind::kUnimplemented, key);
  }
}

TEST(AdapterRefusalTest, InitialisationsThatChangeTheBaseAreRefused) {
  for (const char* init :
       {"pissa", "pissa_niter_16", "olora", "corda", "lora_ga", "loftq", "new"}) {
    ExpectRefused(WithKey("init_lora_weights", Json(init).dump()), ErrorKind::kUnimplemented, init);
  }
  for (const char* init : {"true", "false", "null", "\"gaussian\"", "\"eva\"", "\"orthogonal\""}) {
    EXPECT_EQ(WithKey("init_lora_weights", init).text, "accepted") << init;
  }
}

TEST(AdapterRefusalTest, NeutralAndHarmlessKeysAreAccepted) {
  const std::pair<const char*, const char*> cases[] = {
      {"use_dora", "false"},           {"layer_replication", "null"},
      {"modules_to_save", "[]"},       {"loftq_config", "{}"},
      {"some_future_switch", "false"}, {"lora_dropout", "0.3"},
      {"inference_mode", "true"},      {"peft_version", R"("0.21.2")"},
      {"revision", R"("main")"},       {"auto_mapping", R"({"a": "b"})"},
      {"qalora_group_size", "16"},     {"megatron_core", R"("megatron.core")"},
      {"task_type", R"("CAUSAL_LM")"}, {"bias", R"("none")"}};
  for (const auto& [key, value] : cases) {
    EXPECT_EQ(WithKey(key, value).text, "accepted") << key;
  }
}

TEST(AdapterRefusalTest, MalformedConfigurationsAreInvalid) {
  const std::pair<const char*, const char*> cases[] = {{"r", "0"},
                                                       {"r", "-4"},
                                                       {"r", "\"4\""},
                                                       {"r", "4.5"},
                                                       {"lora_alpha", "\"x\""},
                                                       {"use_rslora", "1"},
                                                       {"target_modules", "null"},
                                                       {"target_modules", "7"},
                                                       {"target_modules", "\"(\""},
                                                       {"layers_to_transform", "[-1]"},
                                                       {"layers_pattern", "\"layers\""},
                                                       {"rank_pattern", R"({"q_proj": 0})"},
                                                       {"rank_pattern", R"({"(": 4})"},
                                                       {"alpha_pattern", R"({"q_proj": "x"})"},
                                                       {"exclude_modules", "[1]"}};
  for (const auto& [key, value] : cases) {
    ExpectRefused(WithKey(key, value), ErrorKind::kInvalidArgument, key);
  }
  PeftFiles files = QueryAdapter();
  for (const char* text : {"", "{", "[]", "{\"r\": NaN}", "{\"peft_type\": \"LORA\"} x"}) {
    files.config = text;
    EXPECT_EQ(PackFolder(files.Folder()).kind, ErrorKind::kInvalidArgument) << text;
  }
}

TEST(AdapterRefusalTest, AnExpressionThatTakesTooLongIsInvalid) {
  ExpectRefused(WithKey("target_modules", R"("(((.*)*)*)*!")"), ErrorKind::kInvalidArgument,
                "target_modules");
}

TEST(AdapterRefusalTest, MissingFilesAreNamedAndPicklesNeverOpened) {
  PeftFolder folder = QueryAdapter().Folder();
  folder.erase("adapter_model.safetensors");
  ExpectRefused(PackFolder(folder), ErrorKind::kInvalidArgument, "adapter_model.safetensors");
  folder["adapter_model.bin"] = "\x80\x04.";
  ExpectRefused(PackFolder(folder), ErrorKind::kUnimplemented, "adapter_model.bin");
  folder.erase("adapter_config.json");
  ExpectRefused(PackFolder(folder), ErrorKind::kInvalidArgument, "adapter_config.json");
}

TEST(AdapterRefusalTest, TensorsOfOtherFeaturesAreRefusedEvenIfTheConfigurationIsSilent) {
  const std::pair<std::string, const char*> cases[] = {
      {kQ0 + ".lora_magnitude_vector", "DoRA"},
      {kQ0 + ".base_layer.bias", "bias"},
      {kQ0 + ".lora_B.bias", "bias"},
      {"base_model.model.lm_head.weight", "lm_head.weight"},
      {"base_model.model.lm_head.lora_A.weight", "lm_head.lora_A"},
      {"base_model.model.model.embed_tokens.lora_embedding_A", "lora_embedding_A"},
      {"base_model.model.model.norm.weight", "model.norm.weight"},
      {kQ0 + ".weight", "q_proj.weight"},
      {"base_model.model.score.modules_to_save.weight", "modules_to_save"},
      {"base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta",
       "trainable_tokens"}};
  for (const auto& [name, mention] : cases) {
    ExpectRefused(WithTensors([&](auto& tensors) { tensors[name] = at::ones({4}); }),
                  ErrorKind::kUnimplemented, mention);
  }
}

TEST(AdapterRefusalTest, HeadAndEmbeddingTargetsAreRefused) {
  for (const char* targets : {R"(["q_proj", "lm_head"])", R"(["q_proj", "embed_tokens"])"}) {
    ExpectRefused(WithKey("target_modules", targets), ErrorKind::kUnimplemented, "target_modules");
  }
}

TEST(AdapterRefusalTest, UnmatchedTensorsAreListed) {
  const Refusal refusal = WithTensors([](auto& tensors) {
    for (const char* name :
         {"x1.lora_A.weight", "x2.lora_A.weight", "x3.lora_A.weight", "x4.lora_A.weight"}) {
      tensors[name] = at::ones({4, 16});
    }
  });
  ExpectRefused(refusal, ErrorKind::kInvalidArgument, "x1.lora_A.weight, x2.lora_A.weight");
  ExpectRefused(refusal, ErrorKind::kInvalidArgument, "and 1 more");
}

TEST(AdapterRefusalTest, AFileWithoutTensorsOrWithNoneThatMatchesIsRefused) {
  ExpectRefused(WithTensors([](auto& tensors) { tensors.clear(); }), ErrorKind::kInvalidArgument,
                "no tensors");
  ExpectRefused(WithTensors([](auto& tensors) {
                  tensors.clear();
                  tensors["layer.0.q.lora_A.weight"] = at::ones({4, 16});
                }),
                ErrorKind::kInvalidArgument, "layer.0.q.lora_A.weight");
}

TEST(AdapterRefusalTest, DamagedTensorsAreRefused) {
  const std::string a = kQ0 + ".lora_A.weight";
  const std::string b = kQ0 + ".lora_B.weight";
  const auto invalid = [](const auto& change, const std::string& mention) {
    ExpectRefused(WithTensors(change), ErrorKind::kInvalidArgument, mention);
  };
  invalid([&](auto& t) { t.erase(a); }, "q_proj.lora_B");
  invalid([&](auto& t) { t.erase(b); }, "q_proj.lora_A");
  invalid([&](auto& t) { t.erase(a), t.erase(b); }, "model.layers.0.self_attn.q_proj");
  invalid([&](auto& t) { std::swap(t[a], t[b]); }, "[4, 16]");
  invalid([&](auto& t) { t[a] = at::ones({4, 17}); }, "[4, 17]");
  invalid([&](auto& t) { t[b] = at::ones({17, 4}); }, "[17, 4]");
  invalid([&](auto& t) { t[a] = at::ones({2, 16}); }, "[4, 16]");
  invalid([&](auto& t) { t[a] = at::ones({64}); }, "[64]");
  invalid([&](auto& t) { t[a] = at::ones({4, 16}, at::kInt); }, "I32");
  invalid([&](auto& t) { t[a][0][0] = std::nanf(""); }, "NaN");
  invalid([&](auto& t) { t[b][3][1] = std::numeric_limits<float>::infinity(); }, "infinity");
  invalid([&](auto& t) { t["model.layers.0.self_attn.q_proj.lora_A.weight"] = t[a]; }, "same");
  invalid([&](auto& t) { t["model.layers.2.self_attn.q_proj.lora_A.weight"] = t[a]; }, "2 layers");
  invalid([&](auto& t) { t["model.layers.0.mlp.up_proj.lora_A.weight"] = t[a]; }, "other half");
  invalid(
      [&](auto& t) {
        t["model.layers.0.self_attn.v_proj.lora_A.weight"] = t[a];
        t["model.layers.0.self_attn.v_proj.lora_B.weight"] = at::ones({8, 4});
      },
      "target_modules");
}

TEST(AdapterRefusalTest, EveryTruncationOfTheTensorFileIsInvalid) {
  PeftFolder folder = QueryAdapter().Folder();
  const std::string whole = folder["adapter_model.safetensors"];
  for (size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    folder["adapter_model.safetensors"] = whole.substr(0, bytes);
    EXPECT_EQ(PackFolder(folder).kind, ErrorKind::kInvalidArgument) << bytes;
  }
}

TEST(AdapterRefusalTest, RanksOverTheLimitAreRefusedWithBothNumbers) {
  const Refusal whole = PackFolder(SomeAdapter(SmallModel(), {"mlp.up_proj"}, 65).Folder());
  ExpectRefused(whole, ErrorKind::kInvalidArgument, "65");
  ExpectRefused(whole, ErrorKind::kInvalidArgument, "64");
  const Refusal pattern = WithKey("rank_pattern", R"({"q_proj": 256})");
  ExpectRefused(pattern, ErrorKind::kInvalidArgument, "256");
  ExpectRefused(pattern, ErrorKind::kInvalidArgument, "64");
}

TEST(AdapterRefusalTest, AnotherBaseNeedsPermission) {
  PeftFiles files = QueryAdapter();
  const auto with_base = [&](const std::string& base) {
    Json config = Json::parse(files.config);
    config["base_model_name_or_path"] = base;
    files.config = config.dump();
    return files.Folder();
  };
  ExpectRefused(PackFolder(with_base("org/other")), ErrorKind::kFailedPrecondition, "org/other");
  EXPECT_EQ(PackFolder(with_base("org/other"), true).text, "accepted");
  EXPECT_EQ(PackFolder(with_base("/models/Small/")).text, "accepted");
  EXPECT_EQ(PackFolder(with_base("")).text, "accepted");
  files.tensors[kQ0 + ".lora_A.weight"] = at::ones({4, 17});
  ExpectRefused(PackFolder(with_base("org/other")), ErrorKind::kInvalidArgument, "[4, 17]");
}

}  // namespace
}  // namespace docmem::engine
