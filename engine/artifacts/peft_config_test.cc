#include "engine/artifacts/peft_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/artifacts/peft_tensors.h"

namespace docmem::engine {
namespace {

PeftConfig Config(const std::string& members) {
  return PeftConfig::Parse(R"({"peft_type": "LORA", )" + members + "}");
}

std::string Name(int layer, const std::string& module) {
  return "model.layers." + std::to_string(layer) + "." + module;
}

const std::string kQ = "self_attn.q_proj";
const std::string kDown = "mlp.down_proj";

TEST(PeftConfigTest, AListNamesModulesByTheirEndingOrWhole) {
  const PeftConfig config =
      Config(R"("target_modules": ["q_proj", "model.layers.1.mlp.down_proj", "proj"])");
  EXPECT_TRUE(config.IsTarget(Name(0, kQ)));
  EXPECT_TRUE(config.IsTarget(Name(1, kDown)));
  EXPECT_FALSE(config.IsTarget(Name(0, kDown)));
}

TEST(PeftConfigTest, AStringIsARegularExpressionOverTheWholeName) {
  const PeftConfig config = Config(R"("target_modules": ".*\\.[01]\\.self_attn\\.(q|v)_proj")");
  EXPECT_TRUE(config.IsTarget(Name(1, kQ)));
  EXPECT_FALSE(config.IsTarget(Name(2, kQ)));
  EXPECT_FALSE(config.IsTarget(Name(1, "self_attn.q_proj.extra")));
  EXPECT_FALSE(Config(R"("target_modules": "q_proj")").IsTarget(Name(1, kQ)));
  EXPECT_TRUE(Config(R"("target_modules": "model|model\\..*q_proj")").IsTarget(Name(1, kQ)));
}

TEST(PeftConfigTest, AllLinearCoversEverythingButTheHead) {
  for (const char* spelling : {"all-linear", "All-Linear"}) {
    const PeftConfig config = Config(std::string(R"("target_modules": ")") + spelling + "\"");
    EXPECT_TRUE(config.IsTarget(Name(5, kQ)));
    EXPECT_TRUE(config.IsTarget(Name(5, kDown)));
    EXPECT_FALSE(config.IsTarget("lm_head"));
    EXPECT_FALSE(config.IsTarget("model.embed_tokens"));
  }
}

TEST(PeftConfigTest, ExcludedModulesWinWhetherListedOrMatched) {
  const PeftConfig listed =
      Config(R"("target_modules": "all-linear", "exclude_modules": ["down_proj"])");
  EXPECT_TRUE(listed.IsTarget(Name(0, kQ)));
  EXPECT_FALSE(listed.IsTarget(Name(0, kDown)));
  const PeftConfig matched =
      Config(R"("target_modules": ["q_proj"], "exclude_modules": "model\\.layers\\.0\\..*")");
  EXPECT_FALSE(matched.IsTarget(Name(0, kQ)));
  EXPECT_TRUE(matched.IsTarget(Name(1, kQ)));
}

TEST(PeftConfigTest, LayersRestrictAListOfEndings) {
  for (const char* layers : {"1", "[1]"}) {
    const PeftConfig config =
        Config(R"("target_modules": ["q_proj"], "layers_to_transform": )" + std::string(layers));
    EXPECT_FALSE(config.IsTarget(Name(0, kQ)));
    EXPECT_TRUE(config.IsTarget(Name(1, kQ)));
    EXPECT_FALSE(config.IsTarget(Name(11, kQ)));
  }
  const PeftConfig none = Config(R"("target_modules": ["q_proj"], "layers_to_transform": [])");
  EXPECT_TRUE(none.IsTarget(Name(0, kQ)));
}

TEST(PeftConfigTest, LayersDontRestrictModulesNamedWhole) {
  const PeftConfig config = Config(
      R"("target_modules": ["model.layers.0.self_attn.q_proj"], "layers_to_transform": [1])");
  EXPECT_TRUE(config.IsTarget(Name(0, kQ)));
}

TEST(PeftConfigTest, TheLayersPatternNamesTheListOfLayers) {
  const std::string start = R"("target_modules": ["q_proj"], "layers_to_transform": [1], )";
  EXPECT_TRUE(Config(start + R"("layers_pattern": "layers")").IsTarget(Name(1, kQ)));
  EXPECT_TRUE(Config(start + R"("layers_pattern": ["h", "layers"])").IsTarget(Name(1, kQ)));
  EXPECT_FALSE(Config(start + R"("layers_pattern": "h")").IsTarget(Name(1, kQ)));
}

TEST(PeftConfigTest, LayersAndAStringOfTargetsExcludeEachOther) {
  EXPECT_THROW(Config(R"("target_modules": ".*q_proj", "layers_to_transform": [1])"), Error);
  EXPECT_THROW(Config(R"("target_modules": "all-linear", "layers_pattern": "layers")"), Error);
}

TEST(PeftConfigTest, TheScaleIsAlphaOverRankOrItsRoot) {
  const PeftConfig plain = Config(R"("target_modules": ["q_proj"], "r": 16, "lora_alpha": 32)");
  EXPECT_EQ(plain.SettingsOf(Name(0, kQ)).rank, 16);
  EXPECT_EQ(plain.SettingsOf(Name(0, kQ)).scale, 2.0);
  const PeftConfig root =
      Config(R"("target_modules": ["q_proj"], "r": 16, "lora_alpha": 8, "use_rslora": true)");
  EXPECT_EQ(root.SettingsOf(Name(0, kQ)).scale, 2.0);
  const PeftConfig defaults = Config(R"("target_modules": ["q_proj"])");
  EXPECT_EQ(defaults.SettingsOf(Name(0, kQ)).rank, 8);
  EXPECT_EQ(defaults.SettingsOf(Name(0, kQ)).scale, 1.0);
}

TEST(PeftConfigTest, PatternsSetRankAndAlphaPerModule) {
  const PeftConfig config = Config(R"("target_modules": "all-linear", "r": 8, "lora_alpha": 8,
      "use_rslora": true,
      "rank_pattern": {"q_proj": 4, "mlp.down_proj": 36, "layers.2..*": 2},
      "alpha_pattern": {"down_proj": 12, "^model.layers.0.self_attn.q_proj": 1})");
  EXPECT_EQ(config.SettingsOf(Name(0, kQ)).rank, 4);
  EXPECT_EQ(config.SettingsOf(Name(0, kQ)).scale, 1.0 / std::sqrt(4.0));
  EXPECT_EQ(config.SettingsOf(Name(1, kQ)).scale, 8.0 / std::sqrt(4.0));
  EXPECT_EQ(config.SettingsOf(Name(2, "mlp.up_proj")).rank, 2);
  EXPECT_EQ(config.SettingsOf(Name(0, kDown)).rank, 36);
  EXPECT_EQ(config.SettingsOf(Name(0, kDown)).scale, 12.0 / std::sqrt(36.0));
}

TEST(PeftConfigTest, TheFirstPatternOfTheFileThatMatchesWins) {
  EXPECT_EQ(Config(R"("target_modules": ["q_proj"], "rank_pattern": {"q_proj": 4, ".*proj": 2})")
                .SettingsOf(Name(0, kQ))
                .rank,
            4);
  EXPECT_EQ(Config(R"("target_modules": ["q_proj"], "rank_pattern": {".*proj": 2, "q_proj": 4})")
                .SettingsOf(Name(0, kQ))
                .rank,
            2);
}

TEST(PeftTensorsTest, KnownPrefixesAreNormalised) {
  for (const char* prefix :
       {"base_model.model.model.", "model.", "", "base_model.model.",
        "base_model.model.base_model.model.model.", "base_model.model.language_model.model.",
        "base_model.model.model.language_model.", "language_model.model."}) {
    for (const char* ending : {".weight", ".default.weight"}) {
      const auto parsed =
          ParseLoraTensorName(std::string(prefix) + "layers.12.mlp.down_proj.lora_B" + ending);
      ASSERT_TRUE(parsed.has_value()) << prefix << ending;
      EXPECT_EQ(parsed->layer, 12);
      EXPECT_EQ(parsed->module, Module::kDown);
      EXPECT_TRUE(parsed->is_b);
    }
  }
}

TEST(PeftTensorsTest, OtherNamesMatchNothing) {
  for (const char* name :
       {"", "layers.", "layers.1", "layers.01.mlp.up_proj.lora_A.weight",
        "layers.-1.mlp.up_proj.lora_A.weight", "layers.1.self_attn.up_proj.lora_A.weight",
        "layers.1.mlp.up_proj.lora_A", "layers.1.mlp.up_proj.lora_C.weight",
        "layers.1.mlp.up_proj.lora_A.other.weight",
        "vision_tower.layers.1.mlp.up_proj.lora_A.weight",
        "layers.99999999999999999999.mlp.up_proj.lora_A.weight",
        "layers.1.mlp.up_proj.lora_A.weight.x"}) {
    EXPECT_FALSE(ParseLoraTensorName(name).has_value()) << name;
  }
}

TEST(PeftTensorsTest, ModuleNamesAreThoseOfTransformers) {
  EXPECT_EQ(FullModuleName(3, Module::kQ), "model.layers.3.self_attn.q_proj");
  EXPECT_EQ(FullModuleName(3, Module::kGate), "model.layers.3.mlp.gate_proj");
}

}  // namespace
}  // namespace docmem::engine
