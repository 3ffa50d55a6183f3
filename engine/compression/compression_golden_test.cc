// Agreement with kvpress 0.5.5, see tests/reference/README.md: the scorer alone on its golden
// inputs, and the kept sets of whole contexts with the same sketch and the same n.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/compression/prefill.h"
#include "engine/compression/scorer_compactor.h"
#include "engine/compression/testing.h"
#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::GoldenSketch;
using testing::LoadModel;
using testing::LoadTensors;
using testing::MaxDifference;
using testing::Reference;
using testing::RunPrefill;

constexpr double kScoreTolerance = 1e-4;
constexpr double kNearThreshold = 1e-3;

class ScorerGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(ScorerGolden, EveryStepHasTheNumbersOfKvpress) {
  const c10::InferenceMode inference;
  const std::string name = GetParam();
  const auto golden = LoadTensors(Reference("scorer/" + name + ".safetensors"));
  const at::Tensor queries = golden.at("queries").to(at::kFloat).transpose(0, 1);
  const at::Tensor keys = golden.at("keys").to(at::kFloat);
  std::vector<at::Tensor> chunks;
  for (int64_t row = 0; row < keys.size(1); row += kCompactorChunk) {
    const int64_t count = std::min(kCompactorChunk, keys.size(1) - row);
    chunks.push_back(
        CompactorChunkAttention(queries.narrow(0, row, count), keys.narrow(1, row, count)));
  }
  const at::Tensor raw_attention = at::cat(chunks, 1);
  const at::Tensor by_group = raw_attention.view({keys.size(0), -1, keys.size(1)}).mean(1);
  const at::Tensor attention =
      ZScore(CompactorPool(by_group * golden.at("values").to(at::kFloat).norm(2, -1)));
  const at::Tensor raw_leverage =
      CompactorLeverage(golden.at("pre_rope_keys"), golden.at("sketch"), 1);
  const at::Tensor leverage = ZScore(raw_leverage);
  const at::Tensor scores = leverage * golden.at("blending").item<double>() + attention;

  const std::map<std::string, at::Tensor> ours = {{"raw_attention", raw_attention},
                                                  {"attention", attention},
                                                  {"raw_leverage", raw_leverage},
                                                  {"leverage", leverage},
                                                  {"scores", scores}};
  for (const auto& [what, tensor] : ours) {
    const double difference = MaxDifference(tensor, golden.at(what));
    std::printf("[ agreement] scorer %s %-14s max |difference| %.2e\n", name.c_str(), what.c_str(),
                difference);
    EXPECT_LE(difference, what == "raw_attention" ? 1e-3 : kScoreTolerance) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Kvpress, ScorerGolden, ::testing::Values("one-chunk", "two-chunks"));

struct SetComparison {
  int64_t different = 0;  // tokens that only one of the two sets has
  int64_t unexcused = 0;  // of those, tokens whose golden score isn't within 1e-3 of the threshold
};

// Compares the kept positions of one head; `scores` [M] are kvpress's, the middle starts at
// `first`.
SetComparison Compare(const at::Tensor& ours, const at::Tensor& theirs, const at::Tensor& scores,
                      int64_t first) {
  const auto positions = [](const at::Tensor& set) {
    const at::Tensor wide = set.to(at::kLong).contiguous();
    return std::vector<int64_t>(wide.const_data_ptr<int64_t>(),
                                wide.const_data_ptr<int64_t>() + wide.numel());
  };
  const std::vector<int64_t> a = positions(ours), b = positions(theirs);
  const auto score = [&](int64_t position) { return scores[position - first].item<double>(); };
  const auto is_middle = [&](int64_t p) { return p >= first && p < first + scores.size(0); };
  double threshold = 1e30;
  for (const int64_t position : b) {
    if (is_middle(position)) threshold = std::min(threshold, score(position));
  }
  std::vector<int64_t> different;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                std::back_inserter(different));
  SetComparison result;
  for (const int64_t position : different) {
    ++result.different;
    const bool near =
        is_middle(position) && std::abs(score(position) - threshold) <= kNearThreshold;
    if (!near) ++result.unexcused;
  }
  return result;
}

std::vector<KeptRows> Compress(const Transformer& model, const Json& golden) {
  const auto shared =
      LoadTensors(Reference("compression/" + golden["model"].get<std::string>() + ".safetensors"));
  const int64_t* ids = shared.at("ids").const_data_ptr<int64_t>();
  PrefillOptions options;
  options.context_ids.assign(ids, ids + golden["length"].get<int64_t>());
  options.head_tokens = golden["head"];
  options.sketch = GoldenSketch(shared.at("sketch"));
  options.chunk_rows = 128;
  for (const Json& ratio : golden["ratios"]) {
    options.compressions.push_back({.ratio_ppm = ratio["ratio_ppm"]});
  }
  return RunPrefill(model, options);
}

// Positions in which the kept sets of all layers and heads differ; fails for those that may not.
int64_t Differences(const KeptRows& rows, const Json& golden, const Json& ratio) {
  const auto expected = LoadTensors(Reference("compression/" + golden["file"].get<std::string>()));
  const int64_t ppm = ratio["ratio_ppm"];
  const at::Tensor theirs = expected.at("kept." + std::to_string(ppm));
  const at::Tensor ours = rows.positions.view(theirs.sizes());
  const at::Tensor scores =
      expected.at("leverage") * (static_cast<double>(ppm) / 1e6) + expected.at("attention");
  int64_t different = 0;
  for (int64_t layer = 0; layer < theirs.size(0); ++layer) {
    for (int64_t head = 0; head < theirs.size(1); ++head) {
      const SetComparison sets =
          Compare(ours[layer][head], theirs[layer][head], scores[layer][head], golden["first"]);
      EXPECT_EQ(sets.unexcused, 0) << "ratio " << ppm << " layer " << layer << " head " << head;
      different += sets.different;
    }
  }
  return different;
}

TEST(PrefillGolden, KeepsTheTokensOfKvpress) {
  const Json cases =
      ParseJson(MappedFile::Open(Reference("compression/cases.json")).text(), "cases.json");
  ASSERT_GE(cases.size(), 16U);
  int64_t different = 0, sets = 0;
  for (const Json& golden : cases) {
    SCOPED_TRACE(golden["file"].get<std::string>());
    const Transformer model = LoadModel(Reference("models/" + golden["model"].get<std::string>()));
    const std::vector<KeptRows> results = Compress(model, golden);
    for (size_t i = 0; i < results.size(); ++i, ++sets) {
      const Json& ratio = golden["ratios"][i];
      const int64_t heads = model.config().layers * model.config().kv_heads;
      ASSERT_EQ(results[i].positions.numel(), heads * ratio["n"].get<int64_t>());
      different += Differences(results[i], golden, ratio);
    }
  }
  std::printf("[ agreement] %ld caches of %zu contexts: %ld positions differ from kvpress\n",
              static_cast<long>(sets), cases.size(), static_cast<long>(different));
}

}  // namespace
}  // namespace docmem::engine
