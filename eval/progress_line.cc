#include "eval/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace docmem::eval {
namespace {

constexpr size_t kBarColumns = 30;
constexpr double kLongest = 1e9;
constexpr double kLeastDone = 0.002;  // below this an estimate would say little
constexpr std::chrono::milliseconds kTerminalPause(200);
constexpr std::chrono::seconds kLogPause(30);

std::string Time(double seconds) {
  const int whole = static_cast<int>(std::min(seconds, kLongest));
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%d:%02d", whole / 60, whole % 60);
  }
  return text;
}

}  // namespace

std::string ProgressText(const Progress& progress, double seconds) {
  const double done = std::clamp(progress.done, 0.0, 1.0);
  const auto full = static_cast<size_t>(done * kBarColumns);
  std::string bar(full, '=');
  if (full < kBarColumns) bar += '>';
  bar.resize(kBarColumns, ' ');
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3.0f %%", std::floor(100.0 * done));
  std::string text = "[" + bar + "] " + percent + "  ";
  if (done >= kLeastDone) text += Time(seconds * (1.0 - done) / done) + " left  ";
  return text + "document " + std::to_string(progress.document) + "/" +
         std::to_string(progress.documents) + ", " + std::string(progress.activity);
}

ProgressLine::ProgressLine(std::FILE* stream)
    : stream_(stream), terminal_(isatty(fileno(stream)) == 1) {}

void ProgressLine::Show(const Progress& progress) {
  const Clock::time_point now = Clock::now();
  if (now - shown_ < (terminal_ ? Clock::duration(kTerminalPause) : Clock::duration(kLogPause))) {
    return;
  }
  shown_ = now;
  const std::chrono::duration<double> passed = now - began_;
  const std::string text = ProgressText(progress, passed.count());
  std::fprintf(stream_, terminal_ ? "\r\x1b[K%s" : "%s\n", text.c_str());
  std::fflush(stream_);
  dirty_ = terminal_;
}

void ProgressLine::Clear() {
  if (!dirty_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  dirty_ = false;
}

}  // namespace docmem::eval
