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

// One profile at one ratio of a golden file.
struct Case {
  Json golden;
  std::string profile;
  uint32_t ppm = 0;

  std::string key() const { return profile + "." + std::to_string(ppm); }
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const Json files =
      ParseJson(MappedFile::Open(Reference("profiles/cases.json")).text(), "cases.json");
  for (const Json& golden : files) {
    for (const auto& [profile, ratios] : golden.at("ratios").items()) {
      for (const Json& ppm : ratios) cases.push_back({golden, profile, ppm});
    }
  }
  return cases;
}

KeptRows Compress(const Case& item) {
  const std::string name = item.golden.at("model");
  const auto shared = LoadTensors(Reference("compression/" + name + ".safetensors"));
  const int64_t* ids = shared.at("ids").const_data_ptr<int64_t>();
  PrefillOptions options;
  options.context_ids.assign(ids, ids + item.golden.at("length").get<int64_t>());
  options.head_tokens = item.golden.at("head");
  options.sketch = GoldenSketch(shared.at("sketch"));
  options.chunk_rows = 100;
  options.compressions = {{.ratio_ppm = item.ppm,
                           .profile = ProfileFromName(item.profile).value(),
                           .seed = item.golden.at("seed")}};
  return RunPrefill(LoadModel(Reference("models/" + name)), options)[0];
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

TEST(ProfileGolden, RandomAndStreamingKeepExactlyTheTokensOfKvpress) {
  int64_t compared = 0;
  for (const Case& item : Cases()) {
    if (item.profile != "random" && item.profile != "streaming") continue;
    const auto golden =
        LoadTensors(Reference("profiles/" + item.golden.at("file").get<std::string>()));
    EXPECT_TRUE(at::equal(Compress(item).positions, golden.at(item.key()).flatten()))
        << item.golden.at("file") << " " << item.key();
    ++compared;
  }
  EXPECT_GE(compared, 48);
}

TEST(ProfileGolden, KnormAndCompactorVllmKeepTheTokensOfTheirReferences) {
  std::map<std::string, int64_t> caches, different;
  for (const Case& item : Cases()) {
    if (item.profile != "knorm" && item.profile != "compactor-vllm") continue;
    const std::string what = item.golden.at("file").get<std::string>() + " " + item.key();
    const auto golden =
        LoadTensors(Reference("profiles/" + item.golden.at("file").get<std::string>()));
    const at::Tensor scores = golden.at(item.profile + ".scores");
    const KeptRows rows = Compress(item);
    const at::Tensor ours = Mask(rows.positions, rows.offsets, scores.sizes());
    const at::Tensor theirs = GoldenMask(golden, item.key(), scores.sizes());
    EXPECT_TRUE(at::equal(ours.sum({1, 2}), theirs.sum({1, 2}))) << what;
    const bool over_heads = item.profile == "compactor-vllm";
    EXPECT_LE(LargestMiss(ours, theirs, scores, over_heads), over_heads ? 1e-3 : 1e-5) << what;
    ++caches[item.profile];
    different[item.profile] += ours.logical_xor(theirs).sum().item<int64_t>();
  }
  for (const auto& [profile, count] : caches) {
    std::printf("[ agreement] %s: %ld caches, %ld positions differ\n", profile.c_str(),
                static_cast<long>(count), static_cast<long>(different[profile]));
    EXPECT_GE(count, 16) << profile;
  }
}

}  // namespace
}  // namespace docmem::engine
