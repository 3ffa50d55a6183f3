#include "engine/sampling/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "engine/formats/error.h"
#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

constexpr size_t kMaxStopStrings = 16;
constexpr size_t kMaxStopBytes = 256;

}  // namespace

void ValidateStopStrings(const std::vector<std::string>& stop_strings) {
  if (stop_strings.size() > kMaxStopStrings) {
    ThrowInvalidArgument("stop_strings", "at most " + std::to_string(kMaxStopStrings) +
                                             " are allowed, not " +
                                             std::to_string(stop_strings.size()));
  }
  for (const std::string& stop : stop_strings) {
    if (stop.empty() || stop.size() > kMaxStopBytes) {
      ThrowInvalidArgument("stop_strings", "each must have 1 to " + std::to_string(kMaxStopBytes) +
                                               " bytes, not " + std::to_string(stop.size()));
    }
    if (!IsValidUtf8(stop)) {
      ThrowInvalidArgument("stop_strings", "each must be valid UTF-8");
    }
  }
}

StopMatcher::StopMatcher(std::vector<std::string> stop_strings)
    : stop_strings_(std::move(stop_strings)) {
  ValidateStopStrings(stop_strings_);
}

std::string StopMatcher::Push(std::string_view text) {
  if (matched_) {
    return {};
  }
  pending_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stop_strings_) {
    first = std::min(first, pending_.find(stop));
  }
  matched_ = first != std::string::npos;
  const size_t shown = matched_ ? first : pending_.size() - HeldBytes();
  std::string result = pending_.substr(0, shown);
  pending_.erase(0, matched_ ? std::string::npos : shown);
  return result;
}

std::string StopMatcher::Finish() { return std::exchange(pending_, {}); }

size_t StopMatcher::HeldBytes() const {
  const std::string_view pending = pending_;
  size_t held = 0;
  for (const std::string_view stop : stop_strings_) {
    for (size_t n = std::min(stop.size() - 1, pending.size()); n > held; --n) {
      if (pending.ends_with(stop.substr(0, n))) {
        held = n;
        break;
      }
    }
  }
  return held;
}

}  // namespace docmem::engine
