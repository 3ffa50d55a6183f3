#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/options.h"
#include "docmem/v1/document.pb.h"

namespace docmem::client {

/// Questions with the answers that count as right, and the ways in which they are asked.
struct EvaluationPlan {
  struct Question {
    std::string text;
    std::vector<std::string> answers;
  };
  struct Way {
    v1::Mode mode = v1::MODE_BASE;
    uint32_t ratio_ppm = 0;
  };
  std::string collection;
  std::string document;
  std::vector<Question> questions;
  std::vector<Way> ways;
  std::string instruction;
  uint32_t max_tokens = 64;       ///< of each answer
  bool build_if_missing = false;  ///< caches
};

/// Asks every question in every way, greedily and eight at a time, and scores the answers with
/// ROUGE-L (rouge.h) against the best of their references. Rows come in the order of the ways; what
/// a way keeps in memory is the cache and adapter that its answers named. `progress` (may be empty)
/// gets answered and all questions, on the calling thread. Blocks until all are answered; the first
/// failure ends it.
absl::StatusOr<v1::Evaluation> Evaluate(const std::shared_ptr<const Connection>& connection,
                                        const EvaluationPlan& plan,
                                        const std::function<void(size_t, size_t)>& progress = {},
                                        const CallOptions& options = {});

}  // namespace docmem::client
