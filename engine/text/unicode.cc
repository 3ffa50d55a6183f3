#include "engine/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

// Which bytes may follow a lead byte, and how many of them make a character.
struct LeadByte {
  size_t bytes;  // 0: can't lead
  unsigned char second_min;
  unsigned char second_max;
};

LeadByte Classify(unsigned char lead) noexcept {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

int CombiningClass(int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

std::vector<int32_t> Decompose(std::string_view text) {
  // No code point decomposes canonically into more than four.
  constexpr size_t kMaxParts = 4;
  std::vector<int32_t> points;
  points.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    text.remove_prefix(step.bytes);
    std::array<int32_t, kMaxParts> parts;
    const auto count = utf8proc_decompose_char(static_cast<int32_t>(step.code_point), parts.data(),
                                               kMaxParts, UTF8PROC_DECOMPOSE, nullptr);
    if (count < 0 || count > static_cast<ptrdiff_t>(kMaxParts)) {
      ThrowInternal("", "a character can't be decomposed");
    }
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }
  return points;
}

// The library's own ordering is quadratic in the length of a run.
void OrderMarks(std::vector<int32_t>* points) {
  auto run = points->begin();
  while (run != points->end()) {
    run = std::find_if(run, points->end(), [](int32_t p) { return CombiningClass(p) != 0; });
    const auto end =
        std::find_if(run, points->end(), [](int32_t p) { return CombiningClass(p) == 0; });
    std::stable_sort(run, end,
                     [](int32_t a, int32_t b) { return CombiningClass(a) < CombiningClass(b); });
    run = end;
  }
}

}  // namespace

Utf8Step NextUtf8(std::string_view text) noexcept {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const LeadByte lead = Classify(byte(0));
  if (lead.bytes == 1) return {Utf8Step::Kind::kValid, 1, byte(0)};
  if (lead.bytes == 0) return {Utf8Step::Kind::kInvalid, 1, kReplacement};
  uint32_t code_point = byte(0) & (0xFFu >> (lead.bytes + 1));
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {Utf8Step::Kind::kIncomplete, i, kReplacement};
    const unsigned char min = i == 1 ? lead.second_min : 0x80;
    const unsigned char max = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < min || byte(i) > max) return {Utf8Step::Kind::kInvalid, i, kReplacement};
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  return {Utf8Step::Kind::kValid, lead.bytes, code_point};
}

size_t FirstInvalidUtf8(std::string_view text) noexcept {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.kind != Utf8Step::Kind::kValid) return at;
    at += step.bytes;
  }
  return at;
}

void RequireUtf8(std::string_view text) {
  const size_t valid = FirstInvalidUtf8(text);
  if (valid != text.size()) {
    ThrowInvalidArgument("", "the text isn't valid UTF-8 at byte " + std::to_string(valid));
  }
}

void AppendUtf8(uint32_t code_point, std::string* text) {
  const auto tail = [&](int shift) {
    text->push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3F)));
  };
  if (code_point < 0x80) {
    text->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    text->push_back(static_cast<char>(0xC0 | code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    text->push_back(static_cast<char>(0xE0 | code_point >> 12));
    tail(6);
    tail(0);
  } else {
    text->push_back(static_cast<char>(0xF0 | code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool IsWhiteSpace(uint32_t code_point) noexcept {
  return (code_point >= 0x09 && code_point <= 0x0D) || code_point == 0x20 || code_point == 0x85 ||
         code_point == 0xA0 || code_point == 0x1680 ||
         (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
         code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F ||
         code_point == 0x3000;
}

std::string NormalizeNfc(std::string_view text) {
  RequireUtf8(text);
  // Everything below U+0300, the first combining mark, is its own normal form.
  constexpr unsigned char kLeadOfFirstMark = 0xCC;
  if (std::none_of(text.begin(), text.end(),
                   [](unsigned char byte) { return byte >= kLeadOfFirstMark; })) {
    return std::string(text);
  }
  std::vector<int32_t> points = Decompose(text);
  OrderMarks(&points);
  const auto count =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  if (count < 0) ThrowInternal("", "the text can't be composed");
  std::string normal;
  normal.reserve(text.size());
  for (ptrdiff_t i = 0; i < count; ++i) AppendUtf8(static_cast<uint32_t>(points[i]), &normal);
  return normal;
}

}  // namespace docmem::engine
