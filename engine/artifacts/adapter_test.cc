#include "engine/artifacts/adapter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/artifacts/testing.h"
#include "engine/formats/json_fields.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::LoadTensors;
using testing::MaxDifference;
using testing::PeftFiles;
using testing::Reference;
using testing::Share;
using testing::SmallModel;
using testing::SomeAdapter;

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

PeftFolder GoldenFolder(const std::string& name) {
  const auto folder = Reference("adapters/" + name);
  return {{"adapter_config.json", ReadText(folder / "adapter_config.json")},
          {"adapter_model.safetensors", ReadText(folder / "adapter_model.safetensors")}};
}

PackedAdapter Pack(const PeftFolder& folder,
                   const PackAdapterOptions& options = {.model_name = "small"}) {
  return PackAdapter(folder, SmallModel(), options);
}

std::shared_ptr<const Adapter> Read(const PackedAdapter& packed,
                                    at::ScalarType dtype = at::kFloat) {
  return ReadPackedAdapter(Share(packed.file), SmallModel(), dtype, at::kCPU);
}

PeftFiles QueryValue(int64_t r = 4) {
  return SomeAdapter(SmallModel(), {"self_attn.q_proj", "self_attn.v_proj"}, r);
}

class GoldenAdapterTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenAdapterTest, LogitsEqualPeft) {
  const Json models = ParseJson(ReadText(Reference("adapters/adapters.json")), "adapters.json");
  const std::string model_name = models.at(GetParam());
  const Transformer model = testing::LoadModel(Reference("models/" + model_name));
  const PackedAdapter packed =
      PackAdapter(GoldenFolder(GetParam()), model.config(), {.model_name = model_name});
  const auto adapter = ReadPackedAdapter(Share(packed.file), model.config(), at::kFloat, at::kCPU);
  const auto golden = LoadTensors(Reference("adapters/" + GetParam() + ".safetensors"));
  const at::Tensor& ids = golden.at("ids");
  const AdapterSpan span{.adapter = &adapter->weights(), .first_row = 0, .rows = ids.numel()};
  const at::Tensor logits = testing::CausalLogits(model, ids, std::span(&span, 1));
  const double difference = MaxDifference(logits, golden.at("logits"));
  std::printf("%s: max |logit difference| %.2e\n", GetParam().c_str(), difference);
  EXPECT_LT(difference, 1e-3);
  EXPECT_GT(MaxDifference(testing::CausalLogits(model, ids), golden.at("logits")), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenAdapterTest,
                         ::testing::Values("all-modules", "query-value", "patterns", "rslora",
                                           "one-layer", "regex-bf16", "all-linear", "qwen3"));

TEST(AdapterTest, PackingKeepsTheTensorsAndTheScale) {
  const PeftFiles files = QueryValue();
  const PackedAdapter packed = Pack(files.Folder());
  const auto adapter = Read(packed);
  EXPECT_EQ(adapter->content_hash(), packed.content_hash);
  const LoraPair& q = adapter->weights().At(1, Module::kQ);
  EXPECT_TRUE(q.a.equal(
      files.tensors.at("base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight")));
  EXPECT_TRUE(q.b.equal(
      files.tensors.at("base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight")));
  EXPECT_EQ(q.scale, 2.0);
  EXPECT_FALSE(adapter->weights().At(0, Module::kK).defined());
  EXPECT_EQ(adapter->bytes(), 2U * 2 * (4 * 16 + 16 * 4) * 4 - 2U * 8 * 4 * 4);
}

TEST(AdapterTest, AlphaOfTwiceTheRankActsFourTimesAsMuchAsAlphaOfHalfOfIt) {
  const auto scale_of = [](int alpha) {
    PeftFiles files = QueryValue(4);
    Json config = ParseJson(files.config, "adapter_config.json");
    config["lora_alpha"] = alpha;
    files.config = config.dump();
    return Read(Pack(files.Folder()))->weights().At(0, Module::kQ).scale;
  };
  EXPECT_EQ(scale_of(8), 4.0 * scale_of(2));
  EXPECT_EQ(scale_of(2), 0.5);
}

TEST(AdapterTest, RsLoraChangesNothingButTheScale) {
  PeftFiles files = QueryValue(4);
  const auto plain = Read(Pack(files.Folder()));
  Json config = ParseJson(files.config, "adapter_config.json");
  config["use_rslora"] = true;
  files.config = config.dump();
  const PackedAdapter packed = Pack(files.Folder());
  const auto root = Read(packed);
  const LoraPair& with = root->weights().At(1, Module::kV);
  const LoraPair& without = plain->weights().At(1, Module::kV);
  EXPECT_TRUE(with.a.equal(without.a) && with.b.equal(without.b));
  EXPECT_EQ(without.scale, 8.0 / 4.0);
  EXPECT_EQ(with.scale, 8.0 / 2.0);
  EXPECT_EQ(packed.description.modules.at("v_proj"), "r=4 scale=4");
}

TEST(AdapterTest, FilesWithoutPeftsPrefixGiveTheSameAdapter) {
  const PeftFiles files = QueryValue();
  const auto expected = Read(Pack(files.Folder()));
  for (const std::string prefix : {"", "model.", "base_model.model.language_model.model."}) {
    PeftFiles renamed = files;
    renamed.tensors.clear();
    for (const auto& [name, tensor] : files.tensors) {
      renamed.tensors[prefix + name.substr(name.find("layers."))] = tensor;
    }
    const auto adapter = Read(Pack(renamed.Folder()));
    for (int64_t layer = 0; layer < 2; ++layer) {
      for (const Module module : {Module::kQ, Module::kV}) {
        const LoraPair& left = adapter->weights().At(layer, module);
        const LoraPair& right = expected->weights().At(layer, module);
        EXPECT_TRUE(left.a.equal(right.a) && left.b.equal(right.b)) << prefix;
      }
    }
  }
}

TEST(AdapterTest, TheDescriptionShowsRanksScalesAndBase) {
  const PackedAdapter packed = Pack(QueryValue().Folder());
  EXPECT_EQ(packed.description.max_rank, 4U);
  EXPECT_EQ(packed.description.layers_changed, 2U);
  EXPECT_EQ(packed.description.base_model, "small");
  EXPECT_EQ(packed.description.packed_bytes, packed.file.size());
  EXPECT_EQ(packed.description.modules, (std::map<std::string, std::string>{
                                            {"q_proj", "r=4 scale=2"}, {"v_proj", "r=4 scale=2"}}));
}

TEST(AdapterTest, HalfAndBfloat16FilesArePackedInTheModelsDtype) {
  for (const at::ScalarType stored : {at::kHalf, at::kBFloat16}) {
    PeftFiles files = QueryValue();
    for (auto& [name, tensor] : files.tensors) {
      tensor = tensor.to(stored);
    }
    const PackedAdapter packed =
        Pack(files.Folder(), {.model_name = "small", .dtype = at::kBFloat16});
    EXPECT_EQ(Read(packed, at::kBFloat16)->weights().At(0, Module::kQ).a.scalar_type(),
              at::kBFloat16);
  }
}

TEST(AdapterTest, PackingIsDeterministicAndTheHashCoversNamesAndBytes) {
  const PeftFolder folder = QueryValue().Folder();
  EXPECT_EQ(Pack(folder).file, Pack(folder).file);
  PeftFolder more = folder;
  more["README.md"] = "text";
  PeftFolder other = folder;
  other["README.me"] = "text";
  EXPECT_NE(Pack(folder).content_hash, Pack(more).content_hash);
  EXPECT_NE(Pack(other).content_hash, Pack(more).content_hash);
}

TEST(AdapterTest, EveryTruncationAndFlippedBitOfThePackedFileIsDataLoss) {
  const PackedAdapter packed = Pack(SomeAdapter(SmallModel(), {"self_attn.k_proj"}, 1).Folder());
  const auto kind_of = [](std::string file) {
    try {
      ReadPackedAdapter(Share(std::move(file)), SmallModel(), at::kFloat, at::kCPU);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kNotFound;
  };
  for (size_t byte = 0; byte < packed.file.size(); ++byte) {
    std::string damaged = packed.file;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << (byte % 8)));
    EXPECT_EQ(kind_of(damaged), ErrorKind::kDataLoss) << byte;
    EXPECT_EQ(kind_of(packed.file.substr(0, byte)), ErrorKind::kDataLoss) << byte;
  }
}

TEST(AdapterTest, APackedFileForAnotherModelOrDtypeIsRefused) {
  const PackedAdapter packed = Pack(QueryValue().Folder());
  ModelConfig wider = SmallModel();
  wider.hidden_size = 32;
  ModelConfig deeper = SmallModel();
  deeper.layers = 3;
  for (const ModelConfig& model : {wider, deeper}) {
    EXPECT_THROW(ReadPackedAdapter(Share(packed.file), model, at::kFloat, at::kCPU), Error);
  }
  try {
    ReadPackedAdapter(Share(packed.file), SmallModel(), at::kBFloat16, at::kCPU);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFailedPrecondition);
  }
}

}  // namespace
}  // namespace docmem::engine
