// SmolLM2-135M-Instruct against transformers and kvpress in fp32; skipped where the model hasn't
// been made (scripts/make_smollm2.py).
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "engine/compression/prefill.h"
#include "engine/compression/testing.h"
#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"
#include "engine/model/attention.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::LoadTensors;
using testing::MaxDifference;
using testing::Reference;

class SmolLm2Test : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = testing::SmolLm2();
    if (!folder) GTEST_SKIP() << testing::kNoSmolLm2;
    model_.emplace(testing::LoadModel(*folder));
  }

  c10::InferenceMode inference_;
  std::optional<Transformer> model_;
};

TEST_F(SmolLm2Test, LogitsAreThoseOfTransformers) {
  const auto golden = LoadTensors(Reference("smollm2/logits.safetensors"));
  const at::Tensor logits =
      testing::CausalLogits(*model_, golden.at("ids")).index_select(0, golden.at("rows"));
  const at::Tensor top = logits.gather(1, golden.at("top_ids").to(at::kLong));
  const double top_difference = MaxDifference(top, golden.at("top_logits"));
  const double sum_difference = MaxDifference(logits.logsumexp(-1), golden.at("log_sum_exp"));
  std::printf("[ agreement] SmolLM2 top 64 logits %.2e, log-sum-exp %.2e\n", top_difference,
              sum_difference);
  EXPECT_LE(top_difference, 1e-3);
  EXPECT_LE(sum_difference, 1e-4);
}

TEST_F(SmolLm2Test, KeptTokensAreThoseOfKvpress) {
  const auto golden = LoadTensors(Reference("smollm2/compressed.safetensors"));
  const Json example =
      ParseJson(MappedFile::Open(Reference("smollm2/case.json")).text(), "case.json");
  PrefillOptions options;
  const int64_t* ids = golden.at("ids").const_data_ptr<int64_t>();
  options.context_ids.assign(ids, ids + golden.at("ids").numel());
  options.head_tokens = example["head"];
  options.compressions = {{.ratio_ppm = example["ratio_ppm"], .seed = example["sketch_seed"]}};
  const KeptRows rows = testing::RunPrefill(*model_, options)[0];

  const at::Tensor theirs = golden.at("kept").to(at::kInt);
  const at::Tensor ours = rows.positions.view(theirs.sizes());
  const at::Tensor in_theirs = (ours.unsqueeze(-1) == theirs.unsqueeze(-2)).any(-1);
  const at::Tensor in_ours = (theirs.unsqueeze(-1) == ours.unsqueeze(-2)).any(-1);
  std::set<std::tuple<int64_t, int64_t, int64_t>> near;
  const at::Tensor near_rows = golden.at("near").to(at::kLong);
  for (int64_t i = 0; i < near_rows.size(0); ++i) {
    const int64_t* row = near_rows[i].const_data_ptr<int64_t>();
    near.emplace(row[0], row[1], row[2]);
  }
  int64_t different = 0;
  for (const auto& [set, found] : {std::pair(ours, in_theirs), std::pair(theirs, in_ours)}) {
    const at::Tensor strangers = found.logical_not().nonzero();
    for (int64_t i = 0; i < strangers.size(0); ++i) {
      const int64_t layer = strangers[i][0].item<int64_t>(), head = strangers[i][1].item<int64_t>();
      const int64_t position = set[layer][head][strangers[i][2]].item<int64_t>();
      ++different;
      EXPECT_TRUE(near.contains({layer, head, position}))
          << layer << " " << head << " " << position;
    }
  }
  std::printf("[ agreement] SmolLM2 kept sets: %ld positions differ of %ld\n",
              static_cast<long>(different), static_cast<long>(theirs.numel()));
}

}  // namespace
}  // namespace docmem::engine
