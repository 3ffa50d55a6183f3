#include "engine/model/weights.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/formats/json_fields.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::LoadTensors;
using testing::MakeModel;
using testing::Reference;
using testing::SaveTensors;

const std::string kQ = "model.layers.1.self_attn.q_proj.weight";

std::string ConfigText(bool tied) {
  const Json config = {{"model_type", "llama"},      {"vocab_size", 20},
                       {"hidden_size", 16},          {"intermediate_size", 24},
                       {"num_hidden_layers", 2},     {"num_attention_heads", 2},
                       {"num_key_value_heads", 1},   {"max_position_embeddings", 64},
                       {"rms_norm_eps", 1e-5},       {"rope_theta", 10000.0},
                       {"tie_word_embeddings", tied}};
  return config.dump();
}

// A small model folder that tests damage.
class WeightsTest : public ::testing::Test {
 protected:
  WeightsTest() { MakeModel(dir(), ConfigText(false), at::kFloat, 1); }

  std::filesystem::path dir() const { return folder_.path() / "model"; }
  std::filesystem::path file() const { return dir() / "model.safetensors"; }

  Weights Load(at::ScalarType dtype = at::kFloat, bool tied = false) const {
    return LoadWeights(dir(), ModelConfig::Parse(ConfigText(tied), ""), {.dtype = dtype});
  }

  void ExpectRefused(ErrorKind kind, const std::string& field, const std::string& message,
                     bool tied = false) const {
    const auto error = ErrorOf([&] { Load(at::kFloat, tied); });
    ASSERT_TRUE(error.has_value()) << "was accepted";
    EXPECT_EQ(error->kind(), kind) << error->what();
    EXPECT_THAT(error->field(), HasSubstr(field)) << error->what();
    EXPECT_THAT(error->what(), HasSubstr(message));
  }

  template <typename Change>
  void Rewrite(Change change) const {
    auto tensors = LoadTensors(file());
    change(tensors);
    SaveTensors(file(), tensors);
  }

  // Spreads the tensors over two shards; `in_both` is stored twice.
  void Shard(const std::string& in_both = "") const {
    std::map<std::string, at::Tensor> first, second;
    Json map;
    for (const auto& [name, tensor] : LoadTensors(file())) {
      const bool early = map.size() % 2 == 0;
      (early ? first : second)[name] = tensor;
      if (name == in_both) (early ? second : first)[name] = tensor;
      map[name] = early ? "model-1.safetensors" : "model-2.safetensors";
    }
    SaveTensors(dir() / "model-1.safetensors", first);
    SaveTensors(dir() / "model-2.safetensors", second);
    WriteIndex(map);
    std::filesystem::remove(file());
  }

  void WriteIndex(const Json& map) const {
    std::ofstream(index()) << Json{{"metadata", Json::object()}, {"weight_map", map}};
  }
  Json ReadMap() const {
    std::ifstream stream(index());
    return Json::parse(stream)["weight_map"];
  }
  std::filesystem::path index() const { return dir() / "model.safetensors.index.json"; }

  testing::TemporaryFolder folder_;
};

TEST_F(WeightsTest, TensorsOfTheComputeDtypeAliasTheMappedFile) {
  const Weights weights = Load();
  const auto stored = LoadTensors(file());
  EXPECT_TRUE(at::equal(weights.layers[1].matrix[0], stored.at(kQ)));
  EXPECT_FALSE(weights.layers[1].matrix[0].storage().resizable());
  EXPECT_EQ(Load(at::kBFloat16).head.scalar_type(), at::kBFloat16);
  int64_t count = 0;
  for (const auto& [name, tensor] : stored) count += tensor.numel();
  EXPECT_EQ(weights.count(), static_cast<uint64_t>(count));
  EXPECT_EQ(weights.owned_bytes, 0U);
  EXPECT_EQ(Load(at::kBFloat16).owned_bytes, 2 * weights.count());
}

TEST_F(WeightsTest, TensorsOutliveTheirFile) {
  const Weights weights = Load();
  const at::Tensor before = weights.head.clone();
  std::filesystem::remove_all(dir());
  EXPECT_TRUE(at::equal(weights.head, before));
}

TEST_F(WeightsTest, ShardsGiveTheSameWeights) {
  const at::Tensor before = Load().layers[1].matrix[0].clone();
  Shard();
  EXPECT_TRUE(at::equal(Load().layers[1].matrix[0], before));
  EXPECT_NO_THROW(testing::LoadModel(Reference("models/tiny-llama-rope3")));
}

TEST_F(WeightsTest, ReportsProgressUpToOne) {
  double last = 0.0;
  LoadWeights(dir(), ModelConfig::Parse(ConfigText(false), ""), {.progress = [&](double done) {
                EXPECT_GE(done, last);
                last = done;
              }});
  EXPECT_DOUBLE_EQ(last, 1.0);
}

TEST_F(WeightsTest, TruncatedShardIsNamedWithItsMissingBytes) {
  Shard();
  for (const std::string name : {"model-1.safetensors", "model-2.safetensors"}) {
    const std::filesystem::path kept = dir() / "kept";
    std::filesystem::copy_file(dir() / name, kept);
    const uintmax_t whole = std::filesystem::file_size(kept);
    for (const uintmax_t missing : {uintmax_t{1}, uintmax_t{100}, whole / 10, whole / 2}) {
      std::filesystem::resize_file(dir() / name, whole - missing);
      ExpectRefused(ErrorKind::kInvalidArgument, "model.",
                    name + " is cut: " + std::to_string(missing) + " bytes are missing");
    }
    std::filesystem::rename(kept, dir() / name);
  }
  EXPECT_NO_THROW(Load());
}

TEST_F(WeightsTest, FolderWithoutWeightsIsNotFound) {
  std::filesystem::remove(file());
  ExpectRefused(ErrorKind::kNotFound, dir().string(), "model.safetensors");
}

TEST_F(WeightsTest, MissingTensorIsNamed) {
  Rewrite([](auto& tensors) { tensors.erase(kQ); });
  ExpectRefused(ErrorKind::kInvalidArgument, kQ, "missing");
}

TEST_F(WeightsTest, OtherShapeIsNamedWithBothShapes) {
  Rewrite([](auto& tensors) { tensors[kQ] = at::zeros({16, 8}); });
  ExpectRefused(ErrorKind::kInvalidArgument, kQ, "[16, 8]");
  ExpectRefused(ErrorKind::kInvalidArgument, kQ, "[16, 16]");
}

TEST_F(WeightsTest, QuantisedWeightsAreRefusedByName) {
  Rewrite([](auto& tensors) { tensors[kQ] = at::zeros({16, 16}, at::kChar); });
  ExpectRefused(ErrorKind::kUnimplemented, kQ, "I8");
  Rewrite([](auto& tensors) {
    tensors[kQ] = at::zeros({16, 16});
    tensors[kQ + "_scale"] = at::zeros({1});
  });
  ExpectRefused(ErrorKind::kUnimplemented, kQ + "_scale", "no such tensor");
}

TEST_F(WeightsTest, RotaryFrequenciesOfOlderFilesAreIgnored) {
  Rewrite([](auto& tensors) {
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = at::zeros({4});
  });
  EXPECT_NO_THROW(Load());
}

TEST_F(WeightsTest, TensorInTwoShardsIsRefused) {
  Shard(kQ);
  ExpectRefused(ErrorKind::kInvalidArgument, kQ, "more than one shard");
}

TEST_F(WeightsTest, IndexThatDisagreesWithTheShardsIsRefused) {
  Shard();
  const Json map = ReadMap();
  Json wrong = map;
  wrong[kQ] = map[kQ] == "model-1.safetensors" ? "model-2.safetensors" : "model-1.safetensors";
  WriteIndex(wrong);
  ExpectRefused(ErrorKind::kInvalidArgument, kQ, "index.json says");
  wrong.erase(kQ);
  WriteIndex(wrong);
  ExpectRefused(ErrorKind::kInvalidArgument, kQ, "not in model.safetensors.index.json");
}

TEST_F(WeightsTest, IndexCannotPointOutOfTheFolder) {
  Shard();
  for (const char* name : {"../model-1.safetensors", "/etc/passwd", "config.json"}) {
    Json map = ReadMap();
    map[kQ] = name;
    WriteIndex(map);
    ExpectRefused(ErrorKind::kInvalidArgument, "weight_map", "isn't the name of a shard");
  }
}

TEST_F(WeightsTest, TiedOrUntiedHead) {
  EXPECT_FALSE(Load(at::kFloat, false).head.is_same(Load(at::kFloat, false).embedding));
  ExpectRefused(ErrorKind::kInvalidArgument, "lm_head.weight", "differs", /*tied=*/true);
  Rewrite([](auto& tensors) { tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]; });
  const Weights equal = Load(at::kFloat, true);
  EXPECT_TRUE(equal.head.is_same(equal.embedding));
  Rewrite([](auto& tensors) { tensors.erase("lm_head.weight"); });
  const Weights tied = Load(at::kFloat, true);
  EXPECT_TRUE(tied.head.is_same(tied.embedding));
  ExpectRefused(ErrorKind::kInvalidArgument, "lm_head.weight", "missing", /*tied=*/false);
}

TEST_F(WeightsTest, DigestIsOfTheTensorsAndNotOfTheirFiles) {
  const std::string digest = WeightsDigest(dir(), "");
  EXPECT_EQ(digest.size(), 64U);
  Shard();
  EXPECT_EQ(WeightsDigest(dir(), ""), digest);
}

TEST_F(WeightsTest, DigestChangesWithOneBit) {
  const std::string digest = WeightsDigest(dir(), "");
  Rewrite([](auto& tensors) { tensors[kQ].view(at::kInt).view(-1)[5].bitwise_xor_(1); });
  EXPECT_NE(WeightsDigest(dir(), ""), digest);
}

TEST_F(WeightsTest, MemoSparesReadingUntilAFileChanges) {
  const std::filesystem::path memo = folder_.path() / "memo.json";
  const std::string digest = WeightsDigest(dir(), memo);
  ASSERT_TRUE(std::filesystem::exists(memo));
  Json remembered = Json::parse(std::ifstream(memo));
  remembered["digest"] = std::string(64, 'a');
  std::ofstream(memo) << remembered;
  EXPECT_EQ(WeightsDigest(dir(), memo), std::string(64, 'a'));
  std::filesystem::last_write_time(
      file(), std::filesystem::last_write_time(file()) + std::chrono::seconds(1));
  EXPECT_EQ(WeightsDigest(dir(), memo), digest);
  EXPECT_EQ(Json::parse(std::ifstream(memo))["digest"], digest);
}

TEST_F(WeightsTest, DamagedOrUnwritableMemoIsIgnored) {
  const std::filesystem::path memo = folder_.path() / "memo.json";
  const std::string digest = WeightsDigest(dir(), "");
  for (const char* text : {"", "{", "[]", R"({"files": 3})", R"({"digest": 1, "files": []})"}) {
    std::ofstream(memo) << text;
    EXPECT_EQ(WeightsDigest(dir(), memo), digest) << text;
  }
  EXPECT_EQ(WeightsDigest(dir(), folder_.path() / "no" / "such" / "memo.json"), digest);
}

}  // namespace
}  // namespace docmem::engine
