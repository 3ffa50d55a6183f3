#include "bench/load_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace docmem::bench {
namespace {

nlohmann::ordered_json Percentiles(const std::vector<double>& sorted) {
  const auto milliseconds = [&](double share) { return Percentile(sorted, share) * 1e3; };
  return {{"p50", milliseconds(0.5)},
          {"p95", milliseconds(0.95)},
          {"p99", milliseconds(0.99)},
          {"max", milliseconds(1.0)}};
}

std::string Line(const char* name, const std::vector<double>& sorted) {
  return absl::StrFormat("%-34s %9.1f %9.1f %9.1f %9.1f ms\n", name, Percentile(sorted, 0.5) * 1e3,
                         Percentile(sorted, 0.95) * 1e3, Percentile(sorted, 0.99) * 1e3,
                         Percentile(sorted, 1.0) * 1e3);
}

// Bars over powers of two of a millisecond.
std::string Histogram(const std::vector<double>& seconds) {
  std::map<int, size_t> counts;
  size_t most = 0;
  for (const double value : seconds) {
    const int bucket = static_cast<int>(std::floor(std::log2(std::max(value * 1e3, 0.01))));
    most = std::max(most, ++counts[bucket]);
  }
  if (counts.empty()) return "";
  std::string text;
  for (int bucket = counts.begin()->first; bucket <= counts.rbegin()->first; ++bucket) {
    const size_t count = counts[bucket];
    absl::StrAppendFormat(&text, "%10.2f ms … %s %zu\n", std::exp2(bucket),
                          std::string(count * 50 / most, '#'), count);
  }
  return text;
}

}  // namespace

double Percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0.0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

LoadReport::LoadReport(const std::vector<Asked>& asked, size_t documents, double seconds)
    : questions_(asked.size()), seconds_(seconds) {
  for (const Asked& one : asked) {
    if (one.code != absl::StatusCode::kOk) {
      ++errors_[absl::StatusCodeToString(one.code)];
      continue;
    }
    first_token_.push_back(one.first_token - one.due);
    if (one.document >= documents - documents / 4) coldest_.push_back(one.first_token - one.due);
    gaps_.insert(gaps_.end(), one.gaps.begin(), one.gaps.end());
    tokens_ += one.tokens;
    different_ += one.differs ? 1 : 0;
  }
  for (std::vector<double>* numbers : {&first_token_, &coldest_, &gaps_}) {
    std::sort(numbers->begin(), numbers->end());
  }
}

nlohmann::ordered_json LoadReport::Json() const {
  return {{"questions", questions_},
          {"seconds", seconds_},
          {"tokens_per_second", static_cast<double>(tokens_) / seconds_},
          {"questions_per_second", static_cast<double>(first_token_.size()) / seconds_},
          {"first_token_ms", Percentiles(first_token_)},
          {"gap_ms", Percentiles(gaps_)},
          {"coldest_quarter_first_token_ms", Percentiles(coldest_)},
          {"errors", errors_},
          {"different_answers", different_}};
}

std::string LoadReport::Text() const {
  std::string text = absl::StrFormat(
      "%d questions in %.1f s: %.1f tokens/s, %.2f answers/s\n%-34s %9s %9s %9s %9s\n", questions_,
      seconds_, static_cast<double>(tokens_) / seconds_,
      static_cast<double>(first_token_.size()) / seconds_, "", "p50", "p95", "p99", "max");
  absl::StrAppend(&text, Line("time to first token", first_token_),
                  Line("  of the coldest quarter", coldest_), Line("between tokens", gaps_));
  for (const auto& [code, count] : errors_)
    absl::StrAppend(&text, "failed: ", code, " ", count, "\n");
  if (different_ > 0) absl::StrAppend(&text, "answers that differ: ", different_, "\n");
  return absl::StrCat(text, "\ntime to first token\n", Histogram(first_token_));
}

}  // namespace docmem::bench
