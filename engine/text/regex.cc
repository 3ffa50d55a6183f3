#include "engine/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cctype>

#include "engine/formats/error.h"
#include "engine/text/regex_syntax.h"
#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

constexpr size_t kMaxPatternBytes = 1 << 16;

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

template <typename T>
using Owned = std::unique_ptr<T, Free>;

PCRE2_SPTR Units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string PcreMessage(int error) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct Regex::Code {
  Owned<pcre2_code> code;
  std::string field;
};

Regex Regex::Compile(std::string_view pattern, const std::string& field) {
  RequireUtf8(pattern);
  return CompilePcre2(TranslateRegex(pattern, field), field);
}

Regex Regex::Literal(std::string_view text, const std::string& field) {
  std::string pattern;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c))) {
      pattern += '\\';
    }
    pattern += c;
  }
  return CompilePcre2(pattern, field);
}

Regex Regex::CompilePcre2(const std::string& pattern, const std::string& field) {
  if (pattern.size() > kMaxPatternBytes) {
    ThrowInvalidArgument(field, "the regular expression is longer than 64 kB");
  }
  const Owned<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE position = 0;
  Owned<pcre2_code> code(pcre2_compile(Units(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                                       &error, &position, context.get()));
  if (code == nullptr) {
    ThrowInvalidArgument(field, "the regular expression doesn't compile: " + PcreMessage(error));
  }
  // Where just-in-time compilation isn't available, the interpreter gives the same matches.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::make_shared<const Code>(Code{std::move(code), field}));
}

struct Regex::Matcher::State {
  std::shared_ptr<const Code> code;
  Owned<pcre2_match_data> data;

  int Match(std::string_view text, size_t from, uint32_t options) {
    // The caller has checked the text; checking it again at every match would be quadratic.
    return pcre2_match(code->code.get(), Units(text), text.size(), from,
                       options | PCRE2_NO_UTF_CHECK, data.get(), nullptr);
  }
};

Regex::Matcher::Matcher(const Regex& regex) : state_(std::make_unique<State>()) {
  state_->code = regex.code_;
  state_->data.reset(pcre2_match_data_create_from_pattern(regex.code_->code.get(), nullptr));
  if (state_->data == nullptr) throw std::bad_alloc();
}
Regex::Matcher::Matcher(Matcher&&) noexcept = default;
Regex::Matcher::~Matcher() = default;

std::optional<Regex::Range> Regex::Matcher::Find(std::string_view text, size_t from) {
  int count = state_->Match(text, from, 0);
  // The interpreter keeps its stack on the heap.
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = state_->Match(text, from, PCRE2_NO_JIT);
  if (count == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (count < 0) {
    ThrowResourceExhausted(state_->code->field,
                           "the regular expression fails on this text: " + PcreMessage(count));
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(state_->data.get());
  return Range{offsets[0], offsets[1]};
}

}  // namespace docmem::engine
