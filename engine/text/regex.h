#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace docmem::engine {

// A pattern of a tokenizer.json, written for Oniguruma and run by PCRE2 with Unicode properties.
// Immutable, thread-safe.
//
// Syntax with which the two libraries mean different things is refused, not guessed: ^ and $,
// escapes other than those for white space, digits, properties, code points and punctuation,
// nested classes, back references, named groups. White space is Unicode's White_Space in both.
class Regex {
 public:
  // Throws kUnimplemented for syntax as above, kInvalidArgument for patterns that don't compile;
  // `field` is the Error's field.
  static Regex Compile(std::string_view pattern, const std::string& field);

  // The same for a pattern in PCRE2's own syntax.
  static Regex CompilePcre2(const std::string& pattern, const std::string& field);

  // Matches the text exactly.
  static Regex Literal(std::string_view text, const std::string& field);

  struct Range {
    size_t begin;
    size_t end;
  };

  // The working memory of a search. One per thread; the Regex must outlive it.
  class Matcher {
   public:
    explicit Matcher(const Regex& regex);
    Matcher(Matcher&&) noexcept;
    ~Matcher();

    // The leftmost match that starts at byte `from` or later of valid UTF-8; may be empty. Throws
    // kResourceExhausted if the pattern needs too many steps.
    std::optional<Range> Find(std::string_view text, size_t from);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}

  std::shared_ptr<const Code> code_;
};

}  // namespace docmem::engine
