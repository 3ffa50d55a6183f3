#include "training/words.h"

#include <algorithm>
#include <vector>

namespace docmem::training {
namespace {

constexpr size_t kLongWord = 4;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The lower-cased byte, or 0 where it separates words.
char WordByte(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  const bool word = (c >= 'a' && c <= 'z') || IsDigit(c) || static_cast<unsigned char>(c) >= 0x80;
  return word ? c : '\0';
}

std::vector<std::string> Runs(std::string_view text) {
  std::vector<std::string> runs;
  bool inside = false;
  for (const char c : text) {
    const char byte = WordByte(c);
    if (byte != '\0') {
      if (!inside) runs.emplace_back();
      runs.back() += byte;
    }
    inside = byte != '\0';
  }
  return runs;
}

}  // namespace

std::set<std::string> ContentWords(std::string_view text) {
  const std::vector<std::string> runs = Runs(text);
  std::set<std::string> words;
  for (const std::string& run : runs) {
    if (run.size() >= kLongWord || std::ranges::any_of(run, IsDigit)) words.insert(run);
  }
  if (words.empty()) words.insert(runs.begin(), runs.end());
  return words;
}

double SharedPart(const std::set<std::string>& words, const std::set<std::string>& source) {
  if (words.empty()) return 0.0;
  const auto shared =
      std::ranges::count_if(words, [&](const std::string& word) { return source.contains(word); });
  return static_cast<double>(shared) / static_cast<double>(words.size());
}

std::string Normalised(std::string_view text) {
  std::string joined;
  for (const std::string& run : Runs(text)) joined += (joined.empty() ? "" : " ") + run;
  return joined;
}

}  // namespace docmem::training
