#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace docmem::engine {

/// Throws `kInvalidArgument` ("stop_strings") for more than 16 strings, an empty one, one over
/// 256 bytes or one that isn't UTF-8.
void ValidateStopStrings(const std::vector<std::string>& stop_strings);

/// Watches an answer for stop strings, wherever the pieces it comes in are cut. Text that may still
/// turn out to be the start of a stop string is held back. Not thread-safe.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stop_strings);

  /// `text` is whole UTF-8 characters. Returns what is now safe to show, again whole characters.
  /// After a match it ends before the first stop string, and later calls give nothing.
  std::string Push(std::string_view text);

  /// What is still held back when the answer ends otherwise; nothing after a match.
  std::string Finish();

  bool matched() const { return matched_; }

 private:
  size_t HeldBytes() const;

  std::vector<std::string> stop_strings_;
  std::string pending_;
  bool matched_ = false;
};

}  // namespace docmem::engine
