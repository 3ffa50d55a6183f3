#include "engine/session.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <utility>

#include "engine/decode_step.h"
#include "engine/formats/error.h"
#include "engine/sequence.h"

namespace docmem::engine {

class Session::Impl {
 public:
  Impl(std::shared_ptr<const Engine> engine, const SessionOptions& options)
      : engine_(std::move(engine)), planner_(options) {
    if (options.max_rows_per_step < 1) {
      ThrowInvalidArgument("max_rows_per_step", "must be at least 1");
    }
    if (options.max_prompt_rows_beside_answers < 1) {
      ThrowInvalidArgument("max_prompt_rows_beside_answers", "must be at least 1");
    }
  }

  SequenceId Add(SequenceRequest request) {
    const c10::InferenceMode inference;
    sequences_.push_back(std::make_unique<Sequence>(next_id_, std::move(request), *engine_));
    return next_id_++;
  }

  std::vector<SequenceEvent> Step() {
    const c10::InferenceMode inference;
    const std::vector<BatchSlice> slices = planner_.Plan(sequences_);
    last_step_rows_ = slices.empty() ? 0 : slices.back().first_row + slices.back().rows;
    if (slices.empty()) {
      return {};
    }
    std::vector<SequenceEvent> events = Run(slices);
    for (const SequenceEvent& event : events) {
      if (event.finish || event.error) {
        Remove(event.id);
      }
    }
    return events;
  }

  void Remove(SequenceId id) {
    std::erase_if(sequences_, [id](const auto& sequence) { return sequence->id() == id; });
  }

  int64_t running() const { return static_cast<int64_t>(sequences_.size()); }
  int64_t last_step_rows() const { return last_step_rows_; }

  uint64_t kv_bytes() const {
    uint64_t bytes = 0;
    for (const auto& sequence : sequences_) {
      bytes += sequence->own_kv().bytes();
    }
    return bytes;
  }

 private:
  static SequenceEvent Failure(SequenceId id) {
    SequenceEvent event;
    event.id = id;
    event.error = std::current_exception();
    return event;
  }

  std::vector<SequenceEvent> Run(const std::vector<BatchSlice>& slices) {
    std::vector<SequenceEvent> events;
    std::vector<at::Tensor> logits;
    try {
      logits = RunBatch(engine_->transformer(), slices);
    } catch (...) {
      for (const BatchSlice& slice : slices) {
        events.push_back(Failure(slice.sequence->id()));
      }
      return events;
    }
    for (size_t i = 0; i < slices.size(); ++i) {
      try {
        if (auto event = slices[i].sequence->Advance(slices[i].rows, logits[i])) {
          events.push_back(std::move(*event));
        }
      } catch (...) {
        events.push_back(Failure(slices[i].sequence->id()));
      }
    }
    return events;
  }

  std::shared_ptr<const Engine> engine_;
  BatchPlanner planner_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  SequenceId next_id_ = 1;
  int64_t last_step_rows_ = 0;
};

Session::Session(std::shared_ptr<const Engine> engine, SessionOptions options)
    : impl_(std::make_unique<Impl>(std::move(engine), options)) {}
Session::~Session() = default;

SequenceId Session::Add(SequenceRequest request) { return impl_->Add(std::move(request)); }
std::vector<SequenceEvent> Session::Step() { return impl_->Step(); }
void Session::Cancel(SequenceId id) { impl_->Remove(id); }
int64_t Session::running() const { return impl_->running(); }
int64_t Session::last_step_rows() const { return impl_->last_step_rows(); }
uint64_t Session::kv_bytes() const { return impl_->kv_bytes(); }

}  // namespace docmem::engine
