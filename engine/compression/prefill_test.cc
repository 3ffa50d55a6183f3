#include "engine/compression/prefill.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/compression/testing.h"
#include "engine/model/attention.h"
#include "engine/model/testing.h"

namespace docmem::engine {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::LoadModel;
using testing::MaxDifference;
using testing::RandomLora;
using testing::Reference;
using testing::RunPrefill;

constexpr Profile kOtherProfiles[] = {Profile::kKnorm, Profile::kRandom, Profile::kStreaming,
                                      Profile::kCompactorVllm};
constexpr Module kAttention[] = {Module::kQ, Module::kK, Module::kV, Module::kO};

std::vector<int64_t> Ids(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back((i * 7919 + i * i * 31) % 590 + 3);
  return ids;
}

struct LayerRows {
  at::Tensor keys, values;  // [G, S, D]
};

// Keys and values of a whole context, without chunks or eviction.
std::vector<LayerRows> PlainKv(const Transformer& model, const std::vector<int64_t>& ids,
                               const LoraWeights* writer) {
  const c10::InferenceMode inference;
  const AdapterSpan span = {writer, 0, static_cast<int64_t>(ids.size())};
  const std::span<const AdapterSpan> adapters(&span, writer == nullptr ? 0 : 1);
  const at::Tensor positions = at::arange(static_cast<int64_t>(ids.size()), at::kLong);
  at::Tensor hidden = model.Embed(at::tensor(ids, at::kLong));
  std::vector<LayerRows> layers;
  for (int64_t layer = 0; layer < model.config().layers; ++layer) {
    const Qkv qkv = model.Project(layer, hidden, adapters);
    layers.push_back(
        {model.Rotate(qkv.k, model.RotationOf(positions)).transpose(0, 1), qkv.v.transpose(0, 1)});
    const AttentionPart part = AttendCausal(model.Rotate(qkv.q, model.RotationOf(positions)),
                                            layers.back().keys, layers.back().values, 0);
    hidden = model.Finish(layer, hidden, part.out, adapters);
  }
  return layers;
}

class PrefillTest : public ::testing::Test {
 protected:
  KeptRows One(const PrefillOptions& options) const { return RunPrefill(model_, options)[0]; }

  PrefillOptions Options(int64_t context, int64_t head, std::vector<uint32_t> ratios) const {
    PrefillOptions options;
    options.context_ids = Ids(context);
    options.head_tokens = head;
    options.chunk_rows = 64;
    for (const uint32_t ratio : ratios) options.compressions.push_back({.ratio_ppm = ratio});
    return options;
  }

  void ExpectSame(const KeptRows& a, const KeptRows& b) const {
    EXPECT_TRUE(at::equal(a.positions, b.positions));
    EXPECT_TRUE(at::equal(a.keys, b.keys));
    EXPECT_TRUE(at::equal(a.values, b.values));
    EXPECT_TRUE(at::equal(a.offsets, b.offsets));
  }

  // Every kept row is the plain row of its position; `offsets` says whose it is.
  void ExpectRowsOf(const KeptRows& rows, const std::vector<LayerRows>& plain) const {
    const int64_t groups = model_.config().kv_heads;
    const int64_t heads = model_.config().layers * groups;
    ASSERT_EQ(rows.offsets.numel(), heads + 1);
    for (int64_t i = 0; i < heads; ++i) {
      const int64_t begin = rows.offsets[i].item<int64_t>();
      const int64_t count = rows.offsets[i + 1].item<int64_t>() - begin;
      const LayerRows& layer = plain[static_cast<size_t>(i / groups)];
      const at::Tensor positions = rows.positions.narrow(0, begin, count).to(at::kLong);
      const auto expected = [&](const at::Tensor& all) {
        return all[i % groups].index_select(0, positions);
      };
      EXPECT_LE(MaxDifference(rows.keys.narrow(0, begin, count), expected(layer.keys)), 2e-5);
      EXPECT_LE(MaxDifference(rows.values.narrow(0, begin, count), expected(layer.values)), 2e-5);
    }
  }

  Transformer model_ = LoadModel(Reference("models/tiny-llama"));
};

TEST_F(PrefillTest, Ratio0KeepsTheWholePlainCache) {
  const PrefillOptions options = Options(200, 5, {0});
  const KeptRows rows = One(options);
  EXPECT_EQ(rows.positions.numel(), 4 * 200);
  EXPECT_EQ(rows.positions.scalar_type(), at::kInt);
  EXPECT_TRUE(at::equal(rows.positions.view({4, 200}), at::arange(200, at::kInt).expand({4, 200})));
  ExpectRowsOf(rows, PlainKv(model_, options.context_ids, nullptr));
}

TEST_F(PrefillTest, KeptRowsAreThoseOfThePlainCacheAtTheirPositions) {
  const PrefillOptions options = Options(200, 5, {500'000});
  const KeptRows rows = One(options);
  EXPECT_EQ(rows.positions.numel(), 4 * KeptTokens(200, 5, 500'000));
  ExpectRowsOf(rows, PlainKv(model_, options.context_ids, nullptr));
}

TEST_F(PrefillTest, Ratio1KeepsTheHeadAndNeverReadsTheDocument) {
  const PrefillOptions options = Options(200, 70, {1'000'000});
  const KeptRows rows = One(options);
  EXPECT_EQ(rows.positions.numel(), 4 * 70);
  ExpectRowsOf(rows, PlainKv(model_, options.context_ids, nullptr));
  EXPECT_EQ(Prefill(model_, options).units_total(), 2 * (2 + 1) + 2);
  PrefillOptions other = options;
  other.context_ids[100] = 17;
  ExpectSame(One(other), rows);
}

TEST_F(PrefillTest, ShortDocumentAtAHighRatioIsRatio1) {
  const KeptRows rows = One(Options(25, 20, {900'000}));
  EXPECT_EQ(rows.positions.numel(), 4 * 20);
  ExpectSame(rows, One(Options(25, 20, {1'000'000})));
}

TEST_F(PrefillTest, NothingLeftAtAllIsAnEmptyCache) {
  Prefill prefill(model_, Options(50, 0, {1'000'000}));
  EXPECT_EQ(prefill.units_total(), 0);
  EXPECT_TRUE(prefill.Step());
  const KeptRows rows = prefill.TakeResults()[0];
  EXPECT_EQ(rows.keys.sizes(), at::IntArrayRef({0, 64}));
  EXPECT_TRUE(at::equal(rows.offsets, at::zeros({5}, at::kLong)));
}

TEST_F(PrefillTest, FewTokensAreKeptInTheOrderOfProtection) {
  const KeptRows rows = One(Options(100, 3, {950'000}));  // n = 3 + 4
  const at::Tensor expected = at::tensor({0, 1, 2, 96, 97, 98, 99}, at::kInt);
  EXPECT_TRUE(at::equal(rows.positions.view({4, 7}), expected.expand({4, 7})));
}

TEST_F(PrefillTest, ShortContextsWithoutAMiddleAreCompressed) {
  for (int64_t context = 1; context <= 14; ++context) {
    SCOPED_TRACE(context);
    const PrefillOptions options = Options(context, 1, {300'000});
    const KeptRows rows = One(options);
    EXPECT_EQ(rows.positions.numel(), 4 * KeptTokens(context, 1, 300'000));
    ExpectRowsOf(rows, PlainKv(model_, options.context_ids, nullptr));
  }
}

TEST_F(PrefillTest, ManyCompressionsOfOnePassEqualPassesOfTheirOwn) {
  PrefillOptions options = Options(300, 5, {0, 500'000, 900'000, 1'000'000});
  options.compressions.push_back({.ratio_ppm = 500'000, .seed = 9});
  options.compressions.push_back({.ratio_ppm = 500'000, .blend = 0.0});
  for (const Profile profile : kOtherProfiles) {
    options.compressions.push_back({.ratio_ppm = 500'000, .profile = profile});
    options.compressions.push_back({.ratio_ppm = 800'000, .profile = profile});
  }
  const std::vector<KeptRows> together = RunPrefill(model_, options);
  ASSERT_EQ(together.size(), 14U);
  EXPECT_FALSE(at::equal(together[1].positions, together[4].positions));
  EXPECT_FALSE(at::equal(together[1].positions, together[5].positions));
  for (size_t i = 0; i < together.size(); ++i) {
    SCOPED_TRACE(i);
    PrefillOptions alone = options;
    alone.compressions = {options.compressions[i]};
    if (options.compressions[i].ratio_ppm == kRatioOnePpm) {
      EXPECT_LE(MaxDifference(One(alone).keys, together[i].keys), 2e-5);
    } else {
      ExpectSame(One(alone), together[i]);
    }
  }
}

TEST_F(PrefillTest, EveryProfileKeepsItsShareAndRowsOfThePlainCache) {
  for (const Profile profile : kOtherProfiles) {
    SCOPED_TRACE(ProfileName(profile));
    PrefillOptions options = Options(300, 20, {500'000, 900'000, 0, 1'000'000});
    for (Compression& compression : options.compressions) compression.profile = profile;
    const std::vector<KeptRows> results = RunPrefill(model_, options);
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].positions.numel(),
                4 * KeptTokens(300, 20, options.compressions[i].ratio_ppm));
      ExpectRowsOf(results[i], PlainKv(model_, options.context_ids, nullptr));
    }
  }
}

TEST_F(PrefillTest, OnlyTheProfileOverHeadsIsRagged) {
  for (const Profile profile : kOtherProfiles) {
    PrefillOptions options = Options(300, 5, {500'000});
    options.compressions[0].profile = profile;
    const at::Tensor counts = One(options).offsets.diff();
    EXPECT_EQ(at::equal(counts[0], counts[1]), profile != Profile::kCompactorVllm);
    EXPECT_EQ((counts[0] + counts[1]).item<int64_t>(), 2 * KeptTokens(300, 5, 500'000));
  }
}

TEST_F(PrefillTest, StreamingKeepsTheHeadAndTheLatest) {
  PrefillOptions options = Options(100, 3, {900'000});
  options.compressions[0].profile = Profile::kStreaming;
  const at::Tensor expected = at::cat({at::arange(3), at::arange(91, 100)}).to(at::kInt);
  EXPECT_TRUE(at::equal(One(options).positions.view({4, 12}), expected.expand({4, 12})));
}

TEST_F(PrefillTest, RandomDependsOnTheSeedAlone) {
  PrefillOptions options = Options(200, 5, {500'000});
  options.compressions[0] = {.ratio_ppm = 500'000, .profile = Profile::kRandom, .seed = 4};
  const at::Tensor positions = One(options).positions;
  options.context_ids[100] = 17;
  EXPECT_TRUE(at::equal(One(options).positions, positions));
  options.compressions[0].seed = 5;
  EXPECT_FALSE(at::equal(One(options).positions, positions));
}

TEST_F(PrefillTest, ASecondPassWritesExactlyTheChosenPositions) {
  const LoraWeights lora = RandomLora(model_.config(), kAttention, 4, at::kFloat, 1);
  PrefillOptions options = Options(300, 5, {0, 500'000, 900'000, 1'000'000});
  options.compressions.push_back({.ratio_ppm = 500'000, .profile = Profile::kCompactorVllm});
  PrefillOptions first = options;
  first.positions_only = true;
  std::vector<KeptRows> chosen = RunPrefill(model_, first);
  PrefillOptions second = options;
  second.writer = &lora;
  for (const KeptRows& rows : chosen) {
    EXPECT_FALSE(rows.keys.defined() || rows.values.defined());
    second.chosen.push_back({rows.positions, rows.offsets});
  }
  const std::vector<KeptRows> base = RunPrefill(model_, options);
  const std::vector<KeptRows> written = RunPrefill(model_, second);
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_TRUE(at::equal(written[i].positions, base[i].positions));
    EXPECT_TRUE(at::equal(written[i].offsets, base[i].offsets));
    ExpectRowsOf(written[i], PlainKv(model_, options.context_ids, &lora));
  }
  second.chosen.pop_back();
  EXPECT_EQ(ErrorOf([&] { Prefill(model_, second); })->kind(), ErrorKind::kInternal);
}

TEST_F(PrefillTest, SizeOfTheUnitsChangesNothingButRounding) {
  const KeptRows rows = One(Options(300, 5, {500'000}));
  for (const int64_t chunk : {1, 37, 512}) {
    PrefillOptions options = Options(300, 5, {500'000});
    options.chunk_rows = chunk;
    const KeptRows other = One(options);
    EXPECT_TRUE(at::equal(other.positions, rows.positions)) << chunk;
    EXPECT_LE(MaxDifference(other.keys, rows.keys), 2e-5) << chunk;
  }
}

TEST_F(PrefillTest, WorkBetweenTheUnitsAndTwoThreadsChangeNothing) {
  const PrefillOptions options = Options(300, 5, {500'000});
  const KeptRows rows = One(options);
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  Prefill first(model_, options), second(model_, options);
  while (!first.Step()) second.Step();
  second.Step();
  ExpectSame(first.TakeResults()[0], rows);
  ExpectSame(second.TakeResults()[0], rows);
  at::set_num_threads(threads);
}

TEST_F(PrefillTest, UnitsAreCountedToTheEnd) {
  Prefill prefill(model_, Options(130, 5, {500'000}));
  EXPECT_EQ(prefill.units_total(), 2 * (3 + 1) + 3);
  int64_t steps = 0;
  bool done = false;
  while (!done) {
    EXPECT_EQ(prefill.units_done(), steps);
    done = prefill.Step();
    ++steps;
  }
  EXPECT_EQ(steps, 11);
  EXPECT_EQ(prefill.units_done(), 11);
  EXPECT_TRUE(prefill.Step());
}

TEST_F(PrefillTest, LongChunksAttendInSlices) {
  PrefillOptions options = Options(300, 5, {0});
  options.chunk_rows = 280;  // three slices and one
  EXPECT_EQ(Prefill(model_, options).units_total(), 2 * (2 + 1) + 3 + 1);
  ExpectRowsOf(One(options), PlainKv(model_, options.context_ids, nullptr));
}

TEST_F(PrefillTest, AdapterActsOnlyWhenItWrites) {
  const PrefillOptions options = Options(300, 5, {500'000});
  const KeptRows without = One(options);
  const LoraWeights lora = RandomLora(model_.config(), kAttention, 4, at::kFloat, 1);
  ExpectSame(One(options), without);  // loaded, but not active
  PrefillOptions active = options;
  active.writer = &lora;
  const KeptRows with = One(active);
  EXPECT_FALSE(at::equal(with.positions, without.positions));
  ExpectRowsOf(with, PlainKv(model_, options.context_ids, &lora));
}

TEST_F(PrefillTest, Bf16CachesAreBf16AndScoredInFp32) {
  const Transformer model = LoadModel(Reference("models/tiny-llama"), at::kBFloat16);
  const KeptRows rows = RunPrefill(model, Options(300, 5, {500'000}))[0];
  EXPECT_EQ(rows.keys.scalar_type(), at::kBFloat16);
  const at::Tensor exact = One(Options(300, 5, {500'000})).positions;
  const int64_t n = KeptTokens(300, 5, 500'000);
  const at::Tensor shared = (rows.positions.view({4, n, 1}) == exact.view({4, 1, n})).any(-1).sum();
  EXPECT_GE(shared.item<int64_t>(), 4 * n * 9 / 10);
}

TEST_F(PrefillTest, RefusesWhatItCannotDo) {
  const auto expect = [&](const PrefillOptions& options, ErrorKind kind, const char* field) {
    const auto error = ErrorOf([&] { Prefill(model_, options); });
    ASSERT_TRUE(error.has_value()) << field;
    EXPECT_EQ(error->kind(), kind) << error->what();
    EXPECT_EQ(error->field(), field) << error->what();
  };
  expect(Options(0, 0, {500'000}), ErrorKind::kInvalidArgument, "context");
  expect(Options(10, 11, {500'000}), ErrorKind::kInvalidArgument, "head_tokens");
  expect(Options(10, -1, {500'000}), ErrorKind::kInvalidArgument, "head_tokens");
  expect(Options(10, 1, {1'000'001}), ErrorKind::kInvalidArgument, "ratio");
  expect(Options(10, 1, {}), ErrorKind::kInvalidArgument, "compressions");
  PrefillOptions options = Options(10, 1, {0});
  options.compressions[0] = {.profile = Profile::kKnorm, .blend = 0.5};
  expect(options, ErrorKind::kInvalidArgument, "blend");
  options = Options(10, 1, {0});
  options.context_ids[3] = 600;
  expect(options, ErrorKind::kInvalidArgument, "context");
  options = Options(10, 1, {0});
  options.compressions[0].blend = std::numeric_limits<double>::quiet_NaN();
  expect(options, ErrorKind::kInvalidArgument, "blend");
  options = Options(10, 1, {0});
  options.chunk_rows = 0;
  expect(options, ErrorKind::kInvalidArgument, "chunk_rows");
}

}  // namespace
}  // namespace docmem::engine
