#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/session.h"

/// What tests and benches need around an engine; not part of it.
namespace docmem::engine::testing {

/// An engine on a model folder below `tests/reference/models`; one thread, because the tensors are
/// tiny.
std::shared_ptr<const Engine> TinyEngine(const std::string& model,
                                         const std::string& dtype = "float32");

/// Runs an ingestion to its end.
std::shared_ptr<const Cache> Ingest(const Engine& engine, const Context& context,
                                    const Compression& compression,
                                    const IngestionOptions& options = {});

/// The cache of a context when exactly these positions are kept.
std::shared_ptr<const Cache> CacheOfKept(const Engine& engine, const Context& context,
                                         const KeptPositions& kept,
                                         const IngestionOptions& options = {});

/// Positions [L, G, n] of a golden file.
KeptPositions Uniform(const at::Tensor& kept);

/// A golden adapter (folder below `tests/reference/adapters`).
std::shared_ptr<const Adapter> GoldenAdapter(const Engine& engine, const std::string& name);

/// All events of one sequence together.
struct Answer {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  std::optional<FinishReason> finish;
  uint32_t dropped_bytes = 0;
  std::exception_ptr error;
};

/// Adds the requests to the session and steps until all have ended; answers in order.
std::vector<Answer> RunAll(Session& session, const std::vector<SequenceRequest>& requests);

/// One request alone in a new session.
Answer RunAlone(const std::shared_ptr<const Engine>& engine, const SequenceRequest& request);

/// Greedy tokens behind a whole prompt, computed without any cache; ends with a stop token.
std::vector<int32_t> PlainGreedy(const Engine& engine, std::vector<int32_t> prompt, int count);

/// 1-D tensor → ids.
std::vector<int32_t> Ids(const at::Tensor& tensor);

/// The largest distance of two lists of equal length.
double LargestGap(const std::vector<float>& left, const std::vector<float>& right);

}  // namespace docmem::engine::testing
