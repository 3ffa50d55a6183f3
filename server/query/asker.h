#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/query/question.h"

namespace docmem::server {

/// Where services hand in questions without knowing tensors. Thread-safe.
class Asker {
 public:
  virtual ~Asker() = default;

  /// Admits a question. On failure (RESOURCE_EXHAUSTED: the queue is full, or the principal or the
  /// collection has as many as it may; ALREADY_EXISTS: the request id is live; UNAVAILABLE: closed)
  /// the sink is never called. Reads the collection's settings: on the executor.
  virtual absl::Status Submit(Question question, std::shared_ptr<AnswerSink> sink) = 0;

  /// Ends a live question with `status`. False when there is none (any more). Doesn't block.
  virtual bool End(const std::string& principal, const std::string& request_id,
                   absl::Status status) = 0;
};

}  // namespace docmem::server
