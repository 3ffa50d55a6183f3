// Kept sets of the profiles besides `compactor`, see tests/reference/README.md: kvpress's with the
// head kept and n given; compactor-vllm's computed again in double precision.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/compression/prefill.h"
#include "engine/compression/testing.h"
#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::GoldenSketch;
using testing::LoadModel;
using testing::LoadTensors;
using testing::Reference;
using testing::RunPrefill;

using Tensors = std::map<std::string, at::Tensor>;

// One profile at one ratio of a golden file, and what came of it.
struct Result {
  std::string what;
  std::string profile;
  std::string key;  // "PROFILE.PPM"
  KeptRows rows;
};

Json Files() {
  return ParseJson(MappedFile::Open(Reference("profiles/cases.json")).text(), "cases.json");
}

// All profiles and ratios of a file, from one prefill.
std::vector<Result> Compress(const Json& file) {
  const std::string name = file.at("model");
  const auto shared = LoadTensors(Reference("compression/" + name + ".safetensors"));
  const int64_t* ids = shared.at("ids").const_data_ptr<int64_t>();
  PrefillOptions options;
  options.context_ids.assign(ids, ids + file.at("length").get<int64_t>());
  options.head_tokens = file.at("head");
  options.sketch = GoldenSketch(shared.at("sketch"));
  options.chunk_rows = 100;
  std::vector<Result> results;
  for (const auto& [profile, ratios] : file.at("ratios").items()) {
    for (const Json& ppm : ratios) {
      options.compressions.push_back({.ratio_ppm = ppm.get<uint32_t>(),
                                      .profile = ProfileFromName(profile).value(),
                                      .seed = file.at("seed")});
      const std::string key = profile + "." + std::to_string(ppm.get<uint32_t>());
      results.push_back({file.at("file").get<std::string>() + " " + key, profile, key, {}});
    }
  }
  std::vector<KeptRows> rows = RunPrefill(LoadModel(Reference("models/" + name)), options);
  for (size_t i = 0; i < rows.size(); ++i) results[i].rows = std::move(rows[i]);
  return results;
}

// 1 where a position is kept: [L, G, S].
at::Tensor Mask(const at::Tensor& positions, const at::Tensor& offsets, at::IntArrayRef shape) {
  const at::Tensor counts = offsets.diff();
  const at::Tensor rows = at::arange(counts.numel(), at::kLong).repeat_interleave(counts);
  at::Tensor mask = at::zeros({shape[0] * shape[1], shape[2]}, at::kBool);
  mask.index_put_({rows, positions.to(at::kLong)}, at::ones({}, at::kBool));
  return mask.view(shape);
}

// The golden's mask; equal counts of all heads follow from the shape [L, G, n].
at::Tensor GoldenMask(const Tensors& golden, const std::string& key, at::IntArrayRef shape) {
  const at::Tensor positions = golden.at(key);
  const at::Tensor counts = golden.contains(key + ".counts")
                                ? golden.at(key + ".counts").flatten()
                                : at::full({shape[0] * shape[1]}, positions.size(-1), at::kLong);
  return Mask(positions.flatten(), at::cat({at::zeros({1}, at::kLong), counts.cumsum(0)}), shape);
}

// How far, in a layer, a score of a token that only one of two sets has is from the lowest kept
// score of its threshold group (`over_heads`: the layer, else the head); 0 where the sets agree.
double LargestMiss(const at::Tensor& ours, const at::Tensor& theirs, const at::Tensor& scores,
                   bool over_heads) {
  const at::Tensor different = ours.logical_xor(theirs);
  if (!different.any().item<bool>()) return 0.0;
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor kept = scores.masked_fill(theirs.logical_not(), infinity);
  const at::Tensor threshold = over_heads ? kept.amin({1, 2}, true) : kept.amin({2}, true);
  return (scores - threshold).abs().masked_select(different).max().item<double>();
}

// Random scores and positions are exact. Norms of a token that comes twice are equal but for RoPE's
// rounding; the leverage's Gram is rounded in fp32.
double AllowedMiss(const std::string& profile) {
  if (profile == "compactor-vllm") return 1e-3;
  return profile == "knorm" ? 1e-5 : 0.0;
}

void Compare(const Result& result, const Tensors& golden, int64_t* different) {
  const at::Tensor positions = result.rows.positions;
  if (AllowedMiss(result.profile) == 0.0) {
    EXPECT_TRUE(at::equal(positions, golden.at(result.key).flatten())) << result.what;
    return;
  }
  const at::Tensor scores = golden.at(result.profile + ".scores");
  const at::Tensor ours = Mask(positions, result.rows.offsets, scores.sizes());
  const at::Tensor theirs = GoldenMask(golden, result.key, scores.sizes());
  EXPECT_TRUE(at::equal(ours.sum({1, 2}), theirs.sum({1, 2}))) << result.what;
  const bool over_heads = result.profile == "compactor-vllm";
  EXPECT_LE(LargestMiss(ours, theirs, scores, over_heads), AllowedMiss(result.profile))
      << result.what;
  *different += ours.logical_xor(theirs).sum().item<int64_t>();
}

TEST(ProfileGolden, EveryProfileKeepsTheTokensOfItsReference) {
  std::map<std::string, int64_t> caches, different;
  for (const Json& file : Files()) {
    const auto golden = LoadTensors(Reference("profiles/" + file.at("file").get<std::string>()));
    for (const Result& result : Compress(file)) {
      Compare(result, golden, &different[result.profile]);
      ++caches[result.profile];
    }
  }
  for (const auto& [profile, count] : caches) {
    std::printf("[ agreement] %s: %ld caches, %ld positions differ\n", profile.c_str(),
                static_cast<long>(count), static_cast<long>(different[profile]));
    EXPECT_GE(count, 16) << profile;
  }
  EXPECT_EQ(caches.size(), 4U);
}

}  // namespace
}  // namespace docmem::engine
