#include "client/cli/ratio.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace docmem::cli {
namespace {

constexpr uint32_t kMillion = 1'000'000;
constexpr size_t kDigits = 6;

absl::Status Refuse(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" isn't a ratio from 0 to 1 with at most six digits after the point"));
}

bool AreDigits(const std::string& text) {
  return std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

}  // namespace

absl::StatusOr<uint32_t> ParseRatio(const std::string& text) {
  const size_t point = text.find('.');
  const std::string whole = text.substr(0, point);
  std::string digits = point == std::string::npos ? "" : text.substr(point + 1);
  const bool malformed = (whole.empty() && digits.empty()) || !AreDigits(whole) ||
                         !AreDigits(digits) || digits.size() > kDigits || whole.size() > kDigits;
  if (malformed) return Refuse(text);
  digits.resize(kDigits, '0');
  uint64_t ppm = 0;
  if (!absl::SimpleAtoi(whole + digits, &ppm) || ppm > kMillion) return Refuse(text);
  return static_cast<uint32_t>(ppm);
}

std::string FormatRatio(uint32_t ratio_ppm) {
  std::string text = absl::StrFormat("%d.%06d", ratio_ppm / kMillion, ratio_ppm % kMillion);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

Value Ratio(std::optional<uint32_t>* ratio_ppm) {
  return {.placeholder = "RATIO", .assign = [ratio_ppm](const std::string& text) {
            const absl::StatusOr<uint32_t> ppm = ParseRatio(text);
            if (ppm.ok()) *ratio_ppm = *ppm;
            return ppm.status();
          }};
}

Value Ratios(std::vector<uint32_t>* ratio_ppm) {
  return {.placeholder = "RATIO,...", .assign = [ratio_ppm](const std::string& text) {
            for (const auto& part : absl::StrSplit(text, ',')) {
              const absl::StatusOr<uint32_t> ppm = ParseRatio(std::string(part));
              if (!ppm.ok()) return ppm.status();
              ratio_ppm->push_back(*ppm);
            }
            return absl::OkStatus();
          }};
}

}  // namespace docmem::cli
