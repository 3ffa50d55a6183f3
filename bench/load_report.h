#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace docmem::bench {

/// One question as its asker saw it; seconds since the run began.
struct Asked {
  size_t document = 0;  ///< its place in the order of popularity
  double due = 0.0;     ///< when it should have been asked: in an open loop the past may be late
  double first_token = 0.0;
  double end = 0.0;
  std::vector<double> gaps;  ///< between tokens
  uint64_t tokens = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  bool differs = false;  ///< from the answer that its document gave alone
};

/// Of sorted numbers, by nearest rank; 0 when there are none.
double Percentile(const std::vector<double>& sorted, double share);

/// What a run of questions amounts to. Failed questions count in `errors` alone.
class LoadReport {
 public:
  /// `documents`: how many there are, to tell the rarely asked quarter from the others.
  LoadReport(const std::vector<Asked>& asked, size_t documents, double seconds);

  /// {"questions", "seconds", "tokens_per_second", "questions_per_second", "first_token_ms":
  /// {"p50", "p95", "p99", "max"}, "gap_ms": {…}, "coldest_quarter_first_token_ms": {…}, "errors":
  /// {CODE: n}, "different_answers"}.
  nlohmann::ordered_json Json() const;
  /// The same for people, with a histogram of the times to first token.
  std::string Text() const;

 private:
  std::vector<double> first_token_, coldest_, gaps_;  // sorted
  std::map<std::string, uint64_t> errors_;
  uint64_t questions_ = 0, tokens_ = 0, different_ = 0;
  double seconds_;
};

}  // namespace docmem::bench
