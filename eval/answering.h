#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/session.h"
#include "eval/unit_hook.h"

namespace docmem::eval {

/// One whole answer.
struct Answer {
  std::string text;
  int64_t tokens = 0;  ///< end of turn included
  bool ended = false;  ///< by the model, not by `max_tokens`
};

/// Answers all requests, in their order, at most `batch` of them at a time, in as few steps as
/// possible. Throws what `Session::Add` throws and the first sequence's error.
std::vector<Answer> AnswerAll(const std::shared_ptr<const engine::Engine>& engine,
                              const std::vector<engine::SequenceRequest>& requests, int64_t batch,
                              const UnitHook& on_unit);

}  // namespace docmem::eval
