// The models that DocMem is made for: their folders ask for exactly the parameters that
// transformers builds from the same config.json. Weights are files without blocks, so nothing of
// their size is written or read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"
#include "engine/formats/safetensors.h"
#include "engine/model/testing.h"
#include "engine/model/weights.h"

namespace docmem::engine {
namespace {

using testing::ErrorOf;
using testing::Reference;
using testing::TemporaryFolder;

class TargetModel : public ::testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path folder() const { return Reference("shapes/" + std::string(GetParam())); }

  Json Parameters() const {
    return ParseJson(MappedFile::Open(folder() / "parameters.json").text(), "parameters.json");
  }

  // A bf16 file of these tensors, all holes.
  Weights Load(const std::vector<TensorSpec>& tensors) const {
    const TemporaryFolder model;
    const SafetensorsLayout layout = LayOutSafetensors(tensors, {});
    const std::filesystem::path file = model.path() / "model.safetensors";
    std::ofstream(file, std::ios::binary) << layout.header;
    std::filesystem::resize_file(file, layout.file_bytes);
    return LoadWeights(model.path(), ModelConfig::Load(folder()), {.dtype = at::kBFloat16});
  }

  std::vector<TensorSpec> Specs() const {
    std::vector<TensorSpec> specs;
    const Json parameters = Parameters();
    for (const auto& [name, shape] : parameters.at("shapes").items()) {
      specs.push_back({name, DType::kBF16, shape.get<std::vector<int64_t>>()});
    }
    return specs;
  }
};

TEST_P(TargetModel, LoadsTheParametersOfTransformersAndNoOthers) {
  const Weights weights = Load(Specs());
  EXPECT_EQ(weights.count(), Parameters().at("count").get<uint64_t>());
}

TEST_P(TargetModel, NeedsEachParameterInItsShape) {
  const std::vector<TensorSpec> specs = Specs();
  for (size_t i = 0; i < specs.size(); i += 17) {
    std::vector<TensorSpec> without = specs, wide = specs, renamed = specs;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    wide[i].shape[0] += 1;
    renamed[i].name += "_";
    for (const auto& damaged : {without, wide, renamed}) {
      const auto error = ErrorOf([&] { Load(damaged); });
      ASSERT_TRUE(error.has_value()) << specs[i].name;
      EXPECT_THAT(error->what(), ::testing::HasSubstr(specs[i].name));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, TargetModel,
                         ::testing::Values("llama-3.1-8b-instruct", "qwen3-4b"),
                         [](const auto& target) { return std::string(target.param).substr(0, 5); });

}  // namespace
}  // namespace docmem::engine
