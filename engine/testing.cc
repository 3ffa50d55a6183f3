#include "engine/testing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "engine/model/testing.h"
#include "engine/model/transformer.h"

namespace docmem::engine::testing {
namespace {

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool IsStop(const Engine& engine, int32_t id) {
  return std::ranges::count(engine.config().eos_ids, id) > 0 ||
         std::ranges::count(engine.prompt_format().stop_ids(), id) > 0;
}

}  // namespace

std::shared_ptr<const Engine> TinyEngine(const std::string& model, const std::string& dtype) {
  return Engine::Load({.model_dir = Reference("models/" + model), .dtype = dtype, .threads = 1});
}

std::shared_ptr<const Cache> Ingest(const Engine& engine, const Context& context,
                                    const Compression& compression,
                                    const IngestionOptions& options) {
  const auto ingestion = engine.StartIngestion(context, {compression}, options);
  while (!ingestion->Step()) {
  }
  return ingestion->TakeCaches().front();
}

std::shared_ptr<const Cache> CacheOfKept(const Engine& engine, const Context& context,
                                         const KeptPositions& kept,
                                         const IngestionOptions& options) {
  const auto whole = Ingest(engine, context, {.ratio_ppm = 0}, options);
  const auto all = static_cast<int64_t>(context.ids.size());
  const at::Tensor first_rows = (at::arange(kept.offsets.numel() - 1, at::kLong) * all)
                                    .repeat_interleave(kept.offsets.diff());
  const at::Tensor rows = kept.positions.to(at::kLong) + first_rows;
  CacheIdentity identity = whole->identity();
  identity.ratio_ppm = 1;
  return std::make_shared<const Cache>(
      identity, whole->layers(), whole->kv_heads(),
      KeptRows{.keys = whole->rows().keys.index_select(0, rows),
               .values = whole->rows().values.index_select(0, rows),
               .positions = kept.positions,
               .offsets = kept.offsets});
}

KeptPositions Uniform(const at::Tensor& kept) {
  const int64_t heads = kept.size(0) * kept.size(1);
  return {.positions = kept.to(at::kInt).flatten(),
          .offsets = at::arange(heads + 1, at::kLong) * kept.size(2)};
}

std::shared_ptr<const Adapter> GoldenAdapter(const Engine& engine, const std::string& name) {
  const auto folder = Reference("adapters/" + name);
  const PackedAdapter packed =
      engine.Pack({{"adapter_config.json", ReadText(folder / "adapter_config.json")},
                   {"adapter_model.safetensors", ReadText(folder / "adapter_model.safetensors")}},
                  256, true);
  const auto file = std::make_shared<const std::string>(packed.file);
  return engine.LoadAdapter({.owner = file, .bytes = std::as_bytes(std::span(*file))});
}

std::vector<Answer> RunAll(Session& session, const std::vector<SequenceRequest>& requests) {
  std::map<SequenceId, size_t> order;
  for (size_t i = 0; i < requests.size(); ++i) {
    order[session.Add(requests[i])] = i;
  }
  std::vector<Answer> answers(requests.size());
  while (session.running() > 0) {
    for (const SequenceEvent& event : session.Step()) {
      Answer& answer = answers[order.at(event.id)];
      answer.text += event.text;
      answer.ids.insert(answer.ids.end(), event.token_ids.begin(), event.token_ids.end());
      answer.logprobs.insert(answer.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
      answer.finish = event.finish;
      answer.dropped_bytes = event.dropped_bytes;
      answer.error = event.error;
    }
  }
  return answers;
}

Answer RunAlone(const std::shared_ptr<const Engine>& engine, const SequenceRequest& request) {
  Session session(engine);
  return RunAll(session, {request}).front();
}

std::vector<int32_t> PlainGreedy(const Engine& engine, std::vector<int32_t> prompt, int count) {
  std::vector<int32_t> answer;
  while (static_cast<int>(answer.size()) < count &&
         (answer.empty() || !IsStop(engine, answer.back()))) {
    const at::Tensor ids = at::tensor(prompt, at::kInt).to(at::kLong);
    const at::Tensor logits = CausalLogits(engine.transformer(), ids);
    answer.push_back(static_cast<int32_t>(logits[-1].argmax().item<int64_t>()));
    prompt.push_back(answer.back());
  }
  return answer;
}

std::vector<int32_t> Ids(const at::Tensor& tensor) {
  const at::Tensor ids = tensor.to(at::kInt).contiguous();
  return {ids.const_data_ptr<int32_t>(), ids.const_data_ptr<int32_t>() + ids.numel()};
}

double LargestGap(const std::vector<float>& left, const std::vector<float>& right) {
  if (left.size() != right.size()) {
    return std::numeric_limits<double>::infinity();
  }
  double gap = 0.0;
  for (size_t i = 0; i < left.size(); ++i) {
    gap = std::max(gap, std::abs(static_cast<double>(left[i]) - static_cast<double>(right[i])));
  }
  return gap;
}

}  // namespace docmem::engine::testing
