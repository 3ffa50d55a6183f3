#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "eval/evaluation.h"

namespace docmem::eval {

/// "[=====>    ]  42 %  12:31 left  document 3/8, training". `seconds` have passed since the
/// beginning; the time that is left is told once it can be estimated.
std::string ProgressText(const Progress& progress, double seconds);

/// Shows progress on a stream: on a terminal as one line that is written again and again, elsewhere
/// as a line every half minute.
class ProgressLine {
 public:
  explicit ProgressLine(std::FILE* stream);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const Progress& progress);
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::FILE* const stream_;
  const bool terminal_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point shown_;  // the epoch before the first line
  bool dirty_ = false;
};

}  // namespace docmem::eval
