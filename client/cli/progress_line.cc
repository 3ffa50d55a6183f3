#include "client/cli/progress_line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace docmem::cli {
namespace {

constexpr size_t kBarColumns = 30;
constexpr char kEraseLine[] = "\r\x1b[K";

}  // namespace

void ProgressLine::Show(const std::string& text) {
  if (terminal_ == nullptr || text == shown_) return;
  shown_ = text;
  *terminal_ << kEraseLine << text << std::flush;
}

void ProgressLine::ShowBar(const std::string& text, double fraction, const std::string& after) {
  const double part = std::clamp(std::isfinite(fraction) ? fraction : 0.0, 0.0, 1.0);
  const auto full = static_cast<size_t>(part * kBarColumns);
  std::string bar(full, '=');
  if (full < kBarColumns) bar += '>';
  bar.resize(kBarColumns, ' ');
  Show(absl::StrFormat("%-12s [%s] %3.0f %%  %s", text, bar, std::floor(100 * part), after));
}

void ProgressLine::Clear() {
  if (terminal_ == nullptr || shown_.empty()) return;
  shown_.clear();
  *terminal_ << kEraseLine << std::flush;
}

}  // namespace docmem::cli
