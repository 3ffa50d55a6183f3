#include "client/rouge.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace docmem::client {
namespace {

// The two letters outside ASCII whose lower case has an ASCII letter: the Kelvin sign and the I
// with a dot.
std::string LowerCase(absl::string_view text) {
  return absl::AsciiStrToLower(
      absl::StrReplaceAll(text, {{"\xE2\x84\xAA", "k"}, {"\xC4\xB0", "i "}}));
}

std::vector<std::string> Tokens(absl::string_view text) {
  std::string words = LowerCase(text);
  for (char& byte : words) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(byte))) byte = ' ';
  }
  return absl::StrSplit(words, ' ', absl::SkipEmpty());
}

size_t LongestCommonSubsequence(const std::vector<std::string>& a,
                                const std::vector<std::string>& b) {
  std::vector<size_t> row(b.size() + 1, 0);
  for (const std::string& token : a) {
    size_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = token == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

double RougeL(absl::string_view reference, absl::string_view answer) {
  const std::vector<std::string> wanted = Tokens(reference);
  const std::vector<std::string> given = Tokens(answer);
  if (wanted.empty() || given.empty()) return 0.0;
  const auto common = static_cast<double>(LongestCommonSubsequence(wanted, given));
  const double precision = common / static_cast<double>(given.size());
  const double recall = common / static_cast<double>(wanted.size());
  return common > 0 ? 2 * precision * recall / (precision + recall) : 0.0;
}

double BestRougeL(const std::vector<std::string>& references, absl::string_view answer) {
  double best = 0.0;
  for (const std::string& reference : references) best = std::max(best, RougeL(reference, answer));
  return best;
}

}  // namespace docmem::client
