#include "engine/text/regex_syntax.h"

#include <array>

#include "engine/formats/error.h"

namespace docmem::engine {
namespace {

// PCRE2's own \s takes U+180E too.
constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kNotWhiteSpace = R"(\S\x{180E})";

// Escapes that mean the same in both; \p, \P and \x are looked at more closely.
constexpr std::string_view kSameEscapes = "dDrntf";

constexpr std::array<std::string_view, 7> kSameGroups = {
    "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};

bool IsAsciiAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& field) : rest_(pattern), field_(field) {}

  std::string Translate() {
    while (!rest_.empty()) {
      if (rest_[0] == '\\') {
        Escape();
      } else if (in_class_) {
        InsideClass();
      } else {
        OutsideClass();
      }
    }
    return std::move(result_);
  }

 private:
  void Copy(size_t bytes) {
    result_ += rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
  }

  [[noreturn]] void Refuse(std::string_view syntax) const {
    ThrowUnimplemented(field_, "the regular expression uses \"" + std::string(syntax) +
                                   "\", which isn't supported here");
  }

  void Escape() {
    if (rest_.size() < 2) Refuse("\\ at its end");
    const char escaped = rest_[1];
    if (escaped == 's' || escaped == 'S') {
      const std::string_view members = escaped == 's' ? kWhiteSpace : kNotWhiteSpace;
      result_ += in_class_ ? std::string(members) : "[" + std::string(members) + "]";
      rest_.remove_prefix(2);
      return;
    }
    if (escaped == 'p' || escaped == 'P') return Property();
    if (escaped == 'x') return Copy(EndOfBraces());
    if (IsAsciiAlphanumeric(escaped) && kSameEscapes.find(escaped) == std::string_view::npos) {
      Refuse(rest_.substr(0, 2));
    }
    Copy(2);
  }

  // Of the properties, the libraries agree on the general categories: "L", "Lu".
  void Property() {
    const size_t end = EndOfBraces();
    if (end < 5 || end > 6) Refuse(rest_.substr(0, end));
    Copy(end);
  }

  // Where the braces behind a two-character escape end, or the escape itself if it has none.
  size_t EndOfBraces() const {
    if (rest_.size() < 3 || rest_[2] != '{') return 2;
    const size_t closing = rest_.find('}');
    return closing == std::string_view::npos ? rest_.size() : closing + 1;
  }

  void InsideClass() {
    if (rest_[0] == '[' || rest_.starts_with("&&")) Refuse(rest_.substr(0, 1));
    if (rest_[0] == ']') in_class_ = false;
    Copy(1);
  }

  void OutsideClass() {
    switch (rest_[0]) {
      case '[':
        EnterClass();
        return;
      case '(':
        EnterGroup();
        return;
      case '}':
        if (rest_.starts_with("}+") || rest_.starts_with("}?")) Refuse(rest_.substr(0, 2));
        break;
      case '{':
        if (rest_.starts_with("{,")) Refuse("{,");
        break;
      case '^':
      case '$':
        Refuse(rest_.substr(0, 1));
      default:
        break;
    }
    Copy(1);
  }

  void EnterClass() {
    in_class_ = true;
    Copy(rest_.starts_with("[^") ? 2 : 1);
    if (rest_.starts_with("]")) Refuse("[]");
  }

  void EnterGroup() {
    if (rest_.starts_with("(*")) Refuse("(*");
    if (!rest_.starts_with("(?")) return Copy(1);
    for (const std::string_view group : kSameGroups) {
      if (rest_.starts_with(group)) return Copy(group.size());
    }
    Refuse(rest_.substr(0, 3));
  }

  std::string_view rest_;
  const std::string& field_;
  std::string result_;
  bool in_class_ = false;
};

}  // namespace

std::string TranslateRegex(std::string_view pattern, const std::string& field) {
  return Translator(pattern, field).Translate();
}

}  // namespace docmem::engine
