#include "engine/model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/formats/json_fields.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Reference;

Json Llama() {
  return Json::parse(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-5, "rope_theta": 500000.0})");
}

Json Qwen3() {
  Json config = Llama();
  config["model_type"] = "qwen3";
  config["architectures"] = {"Qwen3ForCausalLM"};
  config["head_dim"] = 32;
  config["sliding_window"] = nullptr;
  return config;
}

ModelConfig Parse(const Json& config, const std::string& generation = "") {
  return ModelConfig::Parse(config.dump(), generation);
}

TEST(ModelConfig, ReadsTheGoldenFolders) {
  const ModelConfig llama = ModelConfig::Load(Reference("models/tiny-llama"));
  EXPECT_EQ(llama.family, Family::kLlama);
  EXPECT_EQ(llama.vocab_size, 600);
  EXPECT_EQ(llama.head_dim, 64);
  EXPECT_EQ(llama.query_heads, 4);
  EXPECT_EQ(llama.kv_heads, 2);
  EXPECT_FALSE(llama.tie_word_embeddings);
  EXPECT_FALSE(llama.qk_norm);
  EXPECT_EQ(llama.rope, (RopeConfig{.theta = 100000.0}));
  EXPECT_THAT(llama.eos_ids, ElementsAre(0, 2));
  EXPECT_EQ(llama.name, "tiny-llama");

  const ModelConfig rope3 = ModelConfig::Load(Reference("models/tiny-llama-rope3"));
  EXPECT_EQ(rope3.head_dim, 16);
  EXPECT_EQ(rope3.rope.type, RopeType::kLlama3);
  EXPECT_EQ(rope3.rope.original_max_positions, 8192);
  EXPECT_TRUE(rope3.tie_word_embeddings);

  const ModelConfig qwen = ModelConfig::Load(Reference("models/tiny-qwen3"));
  EXPECT_EQ(qwen.family, Family::kQwen3);
  EXPECT_TRUE(qwen.qk_norm);
  EXPECT_EQ(qwen.rope.theta, 1000000.0);
}

struct Refusal {
  std::string what;  // name of the case
  Json change;       // merged into the config; null removes the key
  ErrorKind kind;
  std::string field;
  bool qwen3 = false;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.what; }

class ModelConfigRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(ModelConfigRefusal, NamesTheField) {
  Json config = GetParam().qwen3 ? Qwen3() : Llama();
  config.merge_patch(GetParam().change);
  const auto error = ErrorOf([&] { Parse(config); });
  ASSERT_TRUE(error.has_value()) << "was accepted";
  EXPECT_EQ(error->kind(), GetParam().kind) << error->what();
  EXPECT_THAT(error->field(), HasSubstr(GetParam().field)) << error->what();
}

constexpr ErrorKind kUnimplemented = ErrorKind::kUnimplemented;
constexpr ErrorKind kInvalid = ErrorKind::kInvalidArgument;

Json Change(const char* text) { return Json::parse(text); }

INSTANTIATE_TEST_SUITE_P(
    NotUnderstood, ModelConfigRefusal,
    ::testing::Values(
        Refusal{"family", Change(R"({"model_type": "gemma3"})"), kUnimplemented, "model_type"},
        Refusal{"classifier", Change(R"({"architectures": ["LlamaForSequenceClassification"]})"),
                kUnimplemented, "architectures"},
        Refusal{"activation", Change(R"({"hidden_act": "gelu"})"), kUnimplemented, "hidden_act"},
        Refusal{"quantised", Change(R"({"quantization_config": {"bits": 4}})"), kUnimplemented,
                "quantization_config"},
        Refusal{"llama window", Change(R"({"sliding_window": 4096})"), kUnimplemented,
                "sliding_window"},
        Refusal{"qwen3 window", Change(R"({"sliding_window": 4096, "use_sliding_window": true})"),
                kUnimplemented, "sliding_window", true},
        Refusal{"layer types",
                Change(R"({"layer_types": ["full_attention", "sliding_attention"]})"),
                kUnimplemented, "layer_types", true},
        Refusal{"rope type", Change(R"({"rope_scaling": {"rope_type": "longrope", "factor": 2}})"),
                kUnimplemented, "rope_scaling.rope_type"},
        Refusal{"old rope type", Change(R"({"rope_scaling": {"type": "dynamic", "factor": 2}})"),
                kUnimplemented, "rope_scaling.type"},
        Refusal{"rope key",
                Change(R"({"rope_scaling": {"type": "linear", "factor": 2, "bend": 1}})"),
                kUnimplemented, "rope_scaling.bend"},
        Refusal{"partial rotation", Change(R"({"partial_rotary_factor": 0.5})"), kUnimplemented,
                "partial_rotary_factor"},
        Refusal{"rope per layer type", Change(R"({"rope_parameters": {"full_attention": {}}})"),
                kUnimplemented, "rope_parameters.full_attention"}));

INSTANTIATE_TEST_SUITE_P(
    Malformed, ModelConfigRefusal,
    ::testing::Values(
        Refusal{"no family", Change(R"({"model_type": null})"), kInvalid, "model_type"},
        Refusal{"no vocabulary", Change(R"({"vocab_size": null})"), kInvalid, "vocab_size"},
        Refusal{"no layers", Change(R"({"num_hidden_layers": 0})"), kInvalid, "num_hidden_layers"},
        Refusal{"no epsilon", Change(R"({"rms_norm_eps": null})"), kInvalid, "rms_norm_eps"},
        Refusal{"epsilon 0", Change(R"({"rms_norm_eps": 0})"), kInvalid, "rms_norm_eps"},
        Refusal{"no positions", Change(R"({"max_position_embeddings": null})"), kInvalid,
                "max_position_embeddings"},
        Refusal{"text for a number", Change(R"({"hidden_size": "64"})"), kInvalid, "hidden_size"},
        Refusal{"heads", Change(R"({"num_key_value_heads": 3})"), kInvalid, "num_key_value_heads"},
        Refusal{"odd head_dim", Change(R"({"head_dim": 15})"), kInvalid, "head_dim"},
        Refusal{"derived head_dim", Change(R"({"hidden_size": 66})"), kInvalid, "head_dim"},
        Refusal{"qwen3 without head_dim", Change(R"({"head_dim": null})"), kInvalid, "head_dim",
                true},
        Refusal{"qwen3 without KV heads", Change(R"({"num_key_value_heads": null})"), kInvalid,
                "num_key_value_heads", true},
        Refusal{"EOS beyond vocabulary", Change(R"({"eos_token_id": [1, 100]})"), kInvalid,
                "eos_token_id"},
        Refusal{"negative EOS", Change(R"({"eos_token_id": -1})"), kInvalid, "eos_token_id"},
        Refusal{"no theta, llama", Change(R"({"rope_theta": null})"), kInvalid, "rope_theta"},
        Refusal{"no theta, qwen3", Change(R"({"rope_theta": null})"), kInvalid, "rope_theta", true},
        Refusal{"negative theta", Change(R"({"rope_theta": -1})"), kInvalid, "rope_theta"},
        Refusal{"thetas disagree", Change(R"({"rope_parameters": {"rope_theta": 10000}})"),
                kInvalid, "rope_theta"},
        Refusal{"type and rope_type disagree",
                Change(R"({"rope_scaling": {"type": "yarn", "rope_type": "linear", "factor": 2}})"),
                kInvalid, "rope_scaling.type"},
        Refusal{"spellings disagree",
                Change(R"({"rope_scaling": {"rope_type": "linear", "factor": 2},
                           "rope_parameters": {"rope_type": "linear", "factor": 4}})"),
                kInvalid, "rope_scaling"},
        Refusal{"factor without a type", Change(R"({"rope_scaling": {"factor": 2}})"), kInvalid,
                "rope_scaling.rope_type"},
        Refusal{"linear without a factor", Change(R"({"rope_scaling": {"type": "linear"}})"),
                kInvalid, "rope_scaling.factor"},
        Refusal{"factor 0", Change(R"({"rope_scaling": {"type": "linear", "factor": 0}})"),
                kInvalid, "rope_scaling.factor"},
        Refusal{"llama3 bounds",
                Change(R"({"rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4,
                           "high_freq_factor": 4}})"),
                kInvalid, "rope_scaling.high_freq_factor"}));

TEST(ModelConfig, TakesAllRotaryTypesFromBothSpellings) {
  for (const std::string settings :
       {R"({"rope_type": "default"})", R"({"rope_type": "linear", "factor": 4.0})",
        R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 2048})",
        R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048})"}) {
    SCOPED_TRACE(settings);
    Json old = Llama(), now = Llama(), both = Llama();
    old["rope_scaling"] = Json::parse(settings);
    now["rope_parameters"] = Json::parse(settings);
    now["rope_parameters"]["rope_theta"] = now["rope_theta"];
    now.erase("rope_theta");
    both["rope_scaling"] = old["rope_scaling"];
    both["rope_parameters"] = now["rope_parameters"];
    EXPECT_EQ(Parse(old).rope, Parse(now).rope);
    EXPECT_EQ(Parse(old).rope, Parse(both).rope);
    EXPECT_EQ(Parse(old).Digest("float32"), Parse(now).Digest("float32"));
  }
}

TEST(ModelConfig, ResolvesWhatYarnLeavesOut) {
  Json config = Llama();
  config["rope_scaling"] = {{"type", "yarn"}, {"original_max_position_embeddings", 2048}};
  const RopeConfig rope = Parse(config).rope;
  EXPECT_EQ(rope.factor, 4.0);
  EXPECT_EQ(rope.beta_fast, 32.0);
  EXPECT_NEAR(rope.attention_factor, 0.1 * std::log(4.0) + 1.0, 1e-12);
}

TEST(ModelConfig, AWindowThatIsNotUsedIsAccepted) {
  Json config = Qwen3();
  config["sliding_window"] = 4096;
  EXPECT_NO_THROW(Parse(config));
  config["use_sliding_window"] = false;
  EXPECT_NO_THROW(Parse(config));
}

TEST(ModelConfig, EosIdsAreThoseOfBothFiles) {
  Json config = Llama();
  config["eos_token_id"] = 7;
  EXPECT_THAT(Parse(config).eos_ids, ElementsAre(7));
  EXPECT_THAT(Parse(config, R"({"eos_token_id": [9, 7, 3]})").eos_ids, ElementsAre(3, 7, 9));
  const auto error = ErrorOf([&] { Parse(config, R"({"eos_token_id": "x"})"); });
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->field(), HasSubstr("generation_config.json.eos_token_id"));
}

TEST(ModelConfig, DigestChangesWithWhatChangesKvAndNothingElse) {
  const std::string digest = Parse(Llama()).Digest("float32");
  EXPECT_NE(Parse(Llama()).Digest("bfloat16"), digest);
  for (const char* change :
       {R"({"rope_theta": 1e6})", R"({"head_dim": 32})", R"({"rms_norm_eps": 1e-6})",
        R"({"num_key_value_heads": 4})", R"({"rope_scaling": {"type": "linear", "factor": 2}})",
        R"({"attention_bias": true})"}) {
    Json config = Llama();
    config.merge_patch(Json::parse(change));
    EXPECT_NE(Parse(config).Digest("float32"), digest) << change;
  }
  for (const char* change :
       {R"({"_name_or_path": "x"})", R"({"eos_token_id": 3})", R"({"torch_dtype": "float16"})",
        R"({"head_dim": 16})", R"({"use_cache": false})"}) {
    Json config = Llama();
    config.merge_patch(Json::parse(change));
    EXPECT_EQ(Parse(config).Digest("float32"), digest) << change;
  }
}

}  // namespace
}  // namespace docmem::engine
