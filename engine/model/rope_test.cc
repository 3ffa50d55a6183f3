#include "engine/model/rope.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"
#include "engine/model/rope_config.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::LoadTensors;
using testing::MaxDifference;
using testing::Reference;

class RopeGolden : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t dim() const { return GetParam(); }

  template <typename Check>
  void ForEachCase(Check check) const {
    const auto golden =
        LoadTensors(Reference("rope/rope" + std::to_string(dim()) + ".safetensors"));
    const Json cases = ParseJson(MappedFile::Open(Reference("rope/rope.json")).text(), "rope.json");
    ASSERT_EQ(cases.size(), 9U);
    for (const auto& [name, parameters] : cases.items()) {
      SCOPED_TRACE(name);
      Json scaling = parameters;
      scaling.erase("rope_theta");
      const Json now = {{"rope_parameters", parameters}};
      const Json old = {{"rope_theta", parameters["rope_theta"]}, {"rope_scaling", scaling}};
      for (const Json& config : {now, old}) {
        SCOPED_TRACE(config.dump());
        const RopeConfig rope = ParseRopeConfig(JsonFields(config, "config.json"), 131072);
        check(RopeTable(rope, dim(), at::kCPU), golden, name + ".");
      }
    }
  }
};

TEST_P(RopeGolden, FrequenciesHaveTheBitsOfTransformers) {
  ForEachCase([](const RopeTable& table, const auto& golden, const std::string& name) {
    const at::Tensor bits = table.inverse_frequencies().view(at::kInt);
    EXPECT_TRUE(at::equal(bits, golden.at(name + "inv_freq_bits")));
    EXPECT_FLOAT_EQ(static_cast<float>(table.attention_factor()),
                    golden.at(name + "scaling").template item<float>());
  });
}

TEST_P(RopeGolden, RotatesByTheAnglesOfTransformersUpToPosition100000) {
  ForEachCase([this](const RopeTable& table, const auto& golden, const std::string& name) {
    const at::Tensor positions = golden.at("positions");
    ASSERT_EQ(positions.max().template item<int64_t>(), 100'000);
    const int64_t half = dim() / 2;
    const at::Tensor ones = at::ones({positions.size(0), 1, half});
    const at::Tensor x = at::cat({ones, at::zeros_like(ones)}, -1);
    const at::Tensor rotated = RopeTable::Rotate(x, table.At(positions)).squeeze(1);
    EXPECT_LE(MaxDifference(rotated.narrow(1, 0, half), golden.at(name + "cos")), 1e-6);
    EXPECT_LE(MaxDifference(rotated.narrow(1, half, half), golden.at(name + "sin")), 1e-6);
  });
}

INSTANTIATE_TEST_SUITE_P(HeadDims, RopeGolden, ::testing::Values(64, 128));

TEST(RopeTable, KeepsTheDtypeOfItsArgument) {
  const RopeTable table({.theta = 10000.0}, 16, at::kCPU);
  const at::Tensor x = at::randn({3, 2, 16}).to(at::kBFloat16);
  const at::Tensor rotated = RopeTable::Rotate(x, table.At(at::arange(3)));
  EXPECT_EQ(rotated.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(rotated[0], x[0]));
}

}  // namespace
}  // namespace docmem::engine
