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
constexpr size_t kMinJitStackBytes = 32 << 10;
constexpr size_t kMaxJitStackBytes = 1 << 20;

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
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
  Owned<pcre2_match_context> context;
  Owned<pcre2_jit_stack> stack;
};

Regex::Matcher::Matcher(const Regex& regex) : state_(std::make_unique<State>()) {
  state_->code = regex.code_;
  state_->data.reset(pcre2_match_data_create_from_pattern(regex.code_->code.get(), nullptr));
  state_->context.reset(pcre2_match_context_create(nullptr));
  if (state_->data == nullptr || state_->context == nullptr) throw std::bad_alloc();
  state_->stack.reset(pcre2_jit_stack_create(kMinJitStackBytes, kMaxJitStackBytes, nullptr));
  if (state_->stack != nullptr) {
    pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->stack.get());
  }
}
Regex::Matcher::Matcher(Matcher&&) noexcept = default;
Regex::Matcher::~Matcher() = default;

std::optional<Regex::Range> Regex::Matcher::Find(std::string_view text, size_t from) {
  // The caller has checked the text; checking it again at every match would be quadratic.
  const int count = pcre2_match(state_->code->code.get(), Units(text), text.size(), from,
                                PCRE2_NO_UTF_CHECK, state_->data.get(), state_->context.get());
  if (count == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (count < 0) {
    ThrowResourceExhausted(state_->code->field,
                           "the regular expression fails on this text: " + PcreMessage(count));
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(state_->data.get());
  return Range{offsets[0], offsets[1]};
}

}  // namespace docmem::engine
