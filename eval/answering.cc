#include "eval/answering.h"

#include <exception>
#include <map>

namespace docmem::eval {
namespace {

// Nobody waits for a single answer, so a step takes as many prompt rows as pay.
constexpr int64_t kRowsPerStep = 512;

}  // namespace

std::vector<Answer> AnswerAll(const std::shared_ptr<const engine::Engine>& engine,
                              const std::vector<engine::SequenceRequest>& requests, int64_t batch,
                              const UnitHook& on_unit) {
  engine::Session session(
      engine, {.max_rows_per_step = kRowsPerStep, .max_prompt_rows_beside_answers = kRowsPerStep});
  std::vector<Answer> answers(requests.size());
  std::map<engine::SequenceId, size_t> running;
  size_t next = 0;
  while (next < requests.size() || !running.empty()) {
    while (next < requests.size() && session.running() < batch) {
      running[session.Add(requests[next])] = next;
      ++next;
    }
    for (const engine::SequenceEvent& event : session.Step()) {
      if (event.error) std::rethrow_exception(event.error);
      Answer& answer = answers[running.at(event.id)];
      answer.text += event.text;
      answer.tokens += static_cast<int64_t>(event.token_ids.size());
      if (!event.finish) continue;
      answer.ended = *event.finish == engine::FinishReason::kEndOfTurn;
      running.erase(event.id);
    }
    const auto done = static_cast<double>(next - running.size());
    on_unit("answering", done / static_cast<double>(requests.size()));
  }
  return answers;
}

}  // namespace docmem::eval
