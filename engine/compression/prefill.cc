#include "engine/compression/prefill.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "engine/compression/scorer.h"
#include "engine/compression/selection.h"
#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

constexpr int64_t kSliceRows = 96;  // attend in one unit: attention grows with the context

// One compression under way.
struct Target {
  int64_t kept = 0;  // n
  double blend = 0.0;
  Protection protection;
  Selector select = nullptr;
  bool chosen = false;  // the positions are in `rows` from the beginning
  KeptRows rows;
};

// All targets that share a scorer; targets whose kept positions don't depend on scores are in none.
struct ScorerGroup {
  Profile profile = Profile::kCompactor;
  uint64_t seed = 0;
  std::unique_ptr<Scorer> scorer;
  std::vector<size_t> targets;
};

void Validate(const PrefillOptions& options) {
  const int64_t context = static_cast<int64_t>(options.context_ids.size());
  if (context == 0) ThrowInvalidArgument("context", "is empty");
  if (options.head_tokens < 0 || options.head_tokens > context) {
    ThrowInvalidArgument("head_tokens", std::to_string(options.head_tokens) + " isn't in 0 … " +
                                            std::to_string(context));
  }
  if (options.compressions.empty()) ThrowInvalidArgument("compressions", "are empty");
  if (options.chunk_rows < 1) ThrowInvalidArgument("chunk_rows", "must be at least 1");
  for (const Compression& compression : options.compressions) {
    if (compression.ratio_ppm > kRatioOnePpm) {
      ThrowInvalidArgument(
          "ratio", std::to_string(compression.ratio_ppm) + " millionths are more than 1,000,000");
    }
    if (compression.blend && !UsesBlend(compression.profile)) {
      ThrowInvalidArgument("blend", "the profile \"" + ProfileName(compression.profile) +
                                        "\" has no leverage score to weigh");
    }
    if (compression.blend && !std::isfinite(*compression.blend)) {
      ThrowInvalidArgument("blend", "must be a finite number");
    }
  }
}

void ValidateIds(const std::vector<int64_t>& ids, int64_t vocab_size) {
  for (const int64_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      ThrowInvalidArgument("context", "token id " + std::to_string(id) + " isn't in 0 … " +
                                          std::to_string(vocab_size - 1));
    }
  }
}

// Room for G·`kept` rows of every layer; without keys and values when only positions are wanted.
KeptRows AllocateRows(const ModelConfig& model, int64_t kept, const at::TensorOptions& options,
                      bool positions_only) {
  const int64_t heads = model.layers * model.kv_heads;
  KeptRows rows{.positions = at::empty({heads * kept}, at::kInt),
                .offsets = at::zeros({heads + 1}, at::kLong)};
  if (!positions_only) {
    rows.keys = at::empty({heads * kept, model.head_dim}, options);
    rows.values = at::empty({heads * kept, model.head_dim}, options);
  }
  return rows;
}

// Writes down the positions [n_g] that each KV head of a layer keeps.
void KeepPositions(int64_t layer, const std::vector<at::Tensor>& kept, KeptRows* rows) {
  int64_t* offset =
      rows->offsets.mutable_data_ptr<int64_t>() + layer * static_cast<int64_t>(kept.size());
  for (const at::Tensor& positions : kept) {
    rows->positions.narrow(0, *offset, positions.size(0)).copy_(positions);
    offset[1] = *offset + positions.size(0);
    ++offset;
  }
}

// Copies the layer's rows at the positions that are written down; keys and values [G, S, D].
void KeepRows(int64_t layer, const at::Tensor& keys, const at::Tensor& values, KeptRows* rows) {
  const int64_t groups = keys.size(0);
  const int64_t* offsets = rows->offsets.const_data_ptr<int64_t>() + layer * groups;
  for (int64_t head = 0; head < groups; ++head) {
    const int64_t first = offsets[head], count = offsets[head + 1] - first;
    const at::Tensor index = rows->positions.narrow(0, first, count).to(keys.device());
    rows->keys.narrow(0, first, count).copy_(keys[head].index_select(0, index));
    rows->values.narrow(0, first, count).copy_(values[head].index_select(0, index));
  }
}

}  // namespace

class Prefill::State {
 public:
  State(const Transformer& model, PrefillOptions options);

  bool Step();
  int64_t units_done() const { return units_done_; }
  int64_t units_total() const;
  double score_seconds() const { return score_time_.count(); }
  std::vector<KeptRows> TakeResults();

 private:
  const ModelConfig& config() const { return model_.config(); }
  int64_t chunks() const { return (rows_ + options_.chunk_rows - 1) / options_.chunk_rows; }
  at::TensorOptions tensor_options() const {
    return at::TensorOptions(model_.device()).dtype(model_.dtype());
  }
  void AddTarget(const Compression& compression);
  void Choose(const std::vector<KeptPositions>& chosen);
  size_t ScorerFor(const Compression& compression);
  void AllocateLayer();
  template <typename Work>
  void Timed(const Work& work);
  std::vector<AdapterSpan> Adapters(int64_t count) const;
  void ProjectChunk(int64_t first, int64_t count);
  void AttendSlice();
  void EvictLayer();

  const Transformer& model_;
  PrefillOptions options_;
  std::vector<Target> targets_;
  std::vector<ScorerGroup> scorers_;
  int64_t rows_ = 0;  // S, or the head's length when nothing else is kept
  int64_t layer_ = 0;
  int64_t chunk_ = 0;  // of the layer: projected so far
  int64_t units_done_ = 0;
  at::Tensor q_;          // [rows of the last chunk, H, D] until all of them have attended
  int64_t first_ = 0;     // its first row
  int64_t attended_ = 0;  // rows of it
  std::chrono::duration<double> score_time_{0};
  at::Tensor hidden_;  // [S, hidden], layer by layer overwritten
  at::Tensor keys_;    // [G, S, D] of the current layer, after RoPE
  at::Tensor values_;  // [G, S, D]
};

Prefill::State::State(const Transformer& model, PrefillOptions options)
    : model_(model), options_(std::move(options)) {
  const c10::InferenceMode inference;
  Validate(options_);
  ValidateIds(options_.context_ids, config().vocab_size);
  for (const Compression& compression : options_.compressions) AddTarget(compression);
  if (!options_.chosen.empty()) Choose(options_.chosen);
  for (const Target& target : targets_) {
    const bool only_head = target.kept == options_.head_tokens;
    rows_ = std::max(rows_, only_head ? options_.head_tokens
                                      : static_cast<int64_t>(options_.context_ids.size()));
  }
  AllocateLayer();
}

void Prefill::State::AddTarget(const Compression& compression) {
  const int64_t context = static_cast<int64_t>(options_.context_ids.size());
  Target target;
  target.kept = KeptTokens(context, options_.head_tokens, compression.ratio_ppm);
  target.blend = BlendOf(compression);
  target.rows = AllocateRows(config(), target.kept, tensor_options(), options_.positions_only);
  target.protection = ProtectionOf(compression.profile, context, options_.head_tokens);
  target.select = SelectorOf(compression.profile);
  if (target.kept == context) target.protection = Protect(context, context, 0, 0);
  const bool scored = target.kept > static_cast<int64_t>(target.protection.order.size());
  if (scored && options_.chosen.empty()) {
    scorers_[ScorerFor(compression)].targets.push_back(targets_.size());
  }
  targets_.push_back(std::move(target));
}

void Prefill::State::Choose(const std::vector<KeptPositions>& chosen) {
  const bool fits = std::ranges::equal(chosen, targets_, [](const auto& from, const auto& to) {
    return from.positions.numel() == to.rows.positions.numel() &&
           from.offsets.numel() == to.rows.offsets.numel();
  });
  if (!fits) ThrowInternal("chosen", "positions don't belong to these compressions");
  for (size_t i = 0; i < chosen.size(); ++i) {
    targets_[i].chosen = true;
    targets_[i].rows.positions = chosen[i].positions;
    targets_[i].rows.offsets = chosen[i].offsets;
  }
}

size_t Prefill::State::ScorerFor(const Compression& compression) {
  for (size_t i = 0; i < scorers_.size(); ++i) {
    if (scorers_[i].profile == compression.profile && scorers_[i].seed == compression.seed) {
      return i;
    }
  }
  const ScorerOptions scorer = {.profile = compression.profile,
                                .context_tokens = static_cast<int64_t>(options_.context_ids.size()),
                                .head_tokens = options_.head_tokens,
                                .dtype = model_.dtype(),
                                .device = model_.device(),
                                .sketch = options_.sketch,
                                .seed = compression.seed};
  scorers_.push_back({compression.profile, compression.seed, MakeScorer(config(), scorer), {}});
  return scorers_.size() - 1;
}

void Prefill::State::AllocateLayer() {
  if (rows_ == 0) {
    layer_ = config().layers;
    return;
  }
  const at::Tensor ids =
      at::tensor(at::ArrayRef<int64_t>(options_.context_ids.data(), static_cast<size_t>(rows_)),
                 at::TensorOptions(at::kLong));
  hidden_ = model_.Embed(ids.to(model_.device()));
  keys_ = at::empty({config().kv_heads, rows_, config().head_dim}, tensor_options());
  values_ = at::empty_like(keys_);
}

template <typename Work>
void Prefill::State::Timed(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  score_time_ += std::chrono::steady_clock::now() - start;
}

bool Prefill::State::Step() {
  const c10::InferenceMode inference;
  if (layer_ == config().layers) return true;
  if (q_.defined()) {
    AttendSlice();
  } else if (chunk_ < chunks()) {
    const int64_t first = chunk_ * options_.chunk_rows;
    ProjectChunk(first, std::min(options_.chunk_rows, rows_ - first));
    ++chunk_;
  } else {
    Timed([this] { EvictLayer(); });
    chunk_ = 0;
    ++layer_;
  }
  ++units_done_;
  return layer_ == config().layers;
}

// Of every layer: its chunks, and the choice of what they leave; of all but the last: the slices.
int64_t Prefill::State::units_total() const {
  if (rows_ == 0) return 0;
  const auto slices = [](int64_t rows) { return (rows + kSliceRows - 1) / kSliceRows; };
  const int64_t of_chunks = rows_ / options_.chunk_rows * slices(options_.chunk_rows) +
                            slices(rows_ % options_.chunk_rows);
  return config().layers * (chunks() + 1) + (config().layers - 1) * of_chunks;
}

std::vector<AdapterSpan> Prefill::State::Adapters(int64_t count) const {
  if (options_.writer == nullptr) return {};
  return {{options_.writer, 0, count}};
}

void Prefill::State::ProjectChunk(int64_t first, int64_t count) {
  const at::Tensor hidden = hidden_.narrow(0, first, count);
  const at::Tensor positions =
      at::arange(first, first + count, at::TensorOptions(model_.device()).dtype(at::kLong));
  const Qkv qkv = model_.Project(layer_, hidden, Adapters(count));
  const Rotation rotation = model_.RotationOf(positions);
  const at::Tensor q = model_.Rotate(qkv.q, rotation);
  keys_.narrow(1, first, count).copy_(model_.Rotate(qkv.k, rotation).transpose(0, 1));
  values_.narrow(1, first, count).copy_(qkv.v.transpose(0, 1));

  const at::Tensor keys = keys_.narrow(1, 0, first + count);
  const at::Tensor values = values_.narrow(1, 0, first + count);
  Timed([&] {
    for (ScorerGroup& group : scorers_) group.scorer->Add({first, q, qkv.k, keys, values});
  });
  // Nothing reads the hidden state behind the last layer: only its keys and values are wanted.
  if (layer_ + 1 == config().layers) return;
  q_ = q;
  first_ = first;
  attended_ = 0;
}

void Prefill::State::AttendSlice() {
  const int64_t count = std::min(kSliceRows, q_.size(0) - attended_), first = first_ + attended_;
  const at::Tensor attended =
      model_.Attend(q_.narrow(0, attended_, count), keys_.narrow(1, 0, first + count),
                    values_.narrow(1, 0, first + count), first);
  const at::Tensor hidden = hidden_.narrow(0, first, count);
  hidden.copy_(model_.Finish(layer_, hidden, attended, Adapters(count)));
  attended_ += count;
  if (attended_ == q_.size(0)) q_.reset();
}

void Prefill::State::EvictLayer() {
  std::vector<at::Tensor> scores(targets_.size());
  for (ScorerGroup& group : scorers_) {
    std::vector<double> blends;
    for (const size_t target : group.targets) blends.push_back(targets_[target].blend);
    const std::vector<at::Tensor> found = group.scorer->Finish(layer_, blends);
    for (size_t i = 0; i < found.size(); ++i) scores[group.targets[i]] = found[i];
  }
  for (size_t i = 0; i < targets_.size(); ++i) {
    Target& target = targets_[i];
    if (!target.chosen) {
      const auto kept = target.select(target.protection, scores[i], config().kv_heads, target.kept);
      KeepPositions(layer_, kept, &target.rows);
    }
    if (target.rows.keys.defined()) KeepRows(layer_, keys_, values_, &target.rows);
  }
}

std::vector<KeptRows> Prefill::State::TakeResults() {
  std::vector<KeptRows> results;
  for (Target& target : targets_) results.push_back(std::move(target.rows));
  targets_.clear();
  return results;
}

Prefill::Prefill(const Transformer& model, PrefillOptions options)
    : state_(std::make_unique<State>(model, std::move(options))) {}
Prefill::~Prefill() = default;
bool Prefill::Step() { return state_->Step(); }
int64_t Prefill::units_done() const { return state_->units_done(); }
int64_t Prefill::units_total() const { return state_->units_total(); }
double Prefill::score_seconds() const { return state_->score_seconds(); }
std::vector<KeptRows> Prefill::TakeResults() { return state_->TakeResults(); }

}  // namespace docmem::engine
