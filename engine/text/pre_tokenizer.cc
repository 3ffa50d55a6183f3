#include "engine/text/pre_tokenizer.h"

#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

class Splitter {
 public:
  Splitter(const std::vector<Regex>& steps, const std::function<void(std::string_view)>& piece)
      : piece_(piece) {
    for (const Regex& step : steps) matchers_.emplace_back(step);
  }

  void Split(std::string_view text, size_t step) {
    if (text.empty()) return;
    if (step == matchers_.size()) return piece_(text);
    size_t done = 0;
    size_t from = 0;
    while (from < text.size()) {
      const auto match = matchers_[step].Find(text, from);
      if (!match) break;
      Split(text.substr(done, match->begin - done), step + 1);
      Split(text.substr(match->begin, match->end - match->begin), step + 1);
      done = match->end;
      from = match->end > from ? match->end : from + NextUtf8(text.substr(from)).bytes;
    }
    Split(text.substr(done), step + 1);
  }

 private:
  const std::function<void(std::string_view)>& piece_;
  std::vector<Regex::Matcher> matchers_;
};

}  // namespace

void PreTokenizer::Split(std::string_view text,
                         const std::function<void(std::string_view)>& piece) const {
  Splitter(steps_, piece).Split(text, 0);
}

}  // namespace docmem::engine
