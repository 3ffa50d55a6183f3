#define PCRE2_CODE_UNIT_WIDTH 8

#include "engine/artifacts/name_pattern.h"

#include <pcre2.h>

#include <array>
#include <utility>

#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

constexpr size_t kMaxExpressionBytes = 4096;
constexpr uint32_t kMatchLimit = 20'000;
constexpr uint32_t kHeapLimitKib = 4096;

PCRE2_SPTR Units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string PcreMessage(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using MatchContext = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>>;

}  // namespace

struct NamePattern::Code {
  std::unique_ptr<pcre2_code, Freed<pcre2_code_free>> code;

  // The capture groups of a match; null without one.
  MatchData Match(std::string_view name, const std::string& field) const {
    const MatchContext context(pcre2_match_context_create(nullptr));
    MatchData data(pcre2_match_data_create_from_pattern(code.get(), nullptr));
    if (!context || !data) {
      ThrowResourceExhausted(field, "no memory for a regular expression");
    }
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    const int result =
        pcre2_match(code.get(), Units(name), name.size(), 0, 0, data.get(), context.get());
    if (result == PCRE2_ERROR_NOMATCH) {
      return nullptr;
    }
    if (result < 0) {
      ThrowInvalidArgument(
          field, "the regular expression can't be applied to module names: " + PcreMessage(result));
    }
    return data;
  }
};

NamePattern::NamePattern(const std::string& expression, Anchor anchor, std::string field)
    : field_(std::move(field)) {
  if (expression.size() > kMaxExpressionBytes) {
    ThrowInvalidArgument(field_, "the regular expression has " + std::to_string(expression.size()) +
                                     " bytes, at most " + std::to_string(kMaxExpressionBytes) +
                                     " are allowed");
  }
  uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_ANCHORED;
  if (anchor == Anchor::kWhole) {
    options |= PCRE2_ENDANCHORED;
  }
  int error = 0;
  PCRE2_SIZE position = 0;
  auto code = std::make_shared<Code>();
  code->code.reset(
      pcre2_compile(Units(expression), expression.size(), options, &error, &position, nullptr));
  if (!code->code) {
    ThrowInvalidArgument(field_, "malformed regular expression: " + PcreMessage(error) +
                                     " at character " + std::to_string(position));
  }
  code_ = std::move(code);
}

bool NamePattern::Matches(std::string_view name) const {
  return code_->Match(name, field_) != nullptr;
}

std::optional<std::string> NamePattern::Group(std::string_view name,
                                              const std::string& group) const {
  const MatchData data = code_->Match(name, field_);
  if (!data) {
    return std::nullopt;
  }
  const int index = pcre2_substring_number_from_name(code_->code.get(), Units(group));
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data.get());
  if (index < 0 || bounds[2 * index] == PCRE2_UNSET) {
    return std::nullopt;
  }
  const PCRE2_SIZE begin = bounds[2 * index];
  return std::string(name.substr(begin, bounds[2 * index + 1] - begin));
}

}  // namespace docmem::engine
