#include "engine/text/added_tokens.h"

#include <algorithm>
#include <functional>

#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

constexpr const char* kWordCharacter = R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}])";

// Where the character that ends at byte `end` starts; `end` isn't 0.
size_t PreviousCharacter(std::string_view text, size_t end) {
  do {
    --end;
  } while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

size_t WhiteSpaceBefore(std::string_view text, size_t end, size_t limit) {
  while (end > limit) {
    const size_t start = PreviousCharacter(text, end);
    if (!IsWhiteSpace(NextUtf8(text.substr(start)).code_point)) break;
    end = start;
  }
  return end;
}

size_t WhiteSpaceBehind(std::string_view text, size_t start) {
  while (start < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(start));
    if (!IsWhiteSpace(step.code_point)) break;
    start += step.bytes;
  }
  return start;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)),
      lengths_by_first_byte_(256),
      word_character_(Regex::CompilePcre2(kWordCharacter, "")) {
  for (const AddedToken& token : tokens_) {
    by_content_.emplace(token.content, &token);
    lengths_by_first_byte_[static_cast<unsigned char>(token.content[0])].push_back(
        token.content.size());
  }
  for (auto& lengths : lengths_by_first_byte_) {
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
}

const AddedToken* AddedTokens::FindAt(std::string_view text, size_t at) const {
  for (const size_t length : lengths_by_first_byte_[static_cast<unsigned char>(text[at])]) {
    if (length > text.size() - at) continue;
    const auto found = by_content_.find(text.substr(at, length));
    if (found != by_content_.end()) return found->second;
  }
  return nullptr;
}

bool AddedTokens::StandsAlone(std::string_view before, std::string_view after) const {
  Regex::Matcher word(word_character_);
  const auto touches = [&](std::string_view character) {
    return word.Find(character, 0).has_value();
  };
  return (before.empty() || !touches(before.substr(PreviousCharacter(before, before.size())))) &&
         (after.empty() || !touches(after.substr(0, NextUtf8(after).bytes)));
}

std::vector<Tokenizer::Segment> AddedTokens::Split(std::string_view text) const {
  std::vector<Tokenizer::Segment> segments;
  size_t done = 0;
  size_t at = 0;
  while (at < text.size()) {
    const AddedToken* token = FindAt(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + token->content.size();
    at = end;
    if (token->single_word && !StandsAlone(text.substr(0, begin), text.substr(end))) continue;
    if (token->lstrip) begin = WhiteSpaceBefore(text, begin, std::min(begin, done));
    if (token->rstrip) end = WhiteSpaceBehind(text, end);
    if (begin > done) segments.push_back({std::nullopt, text.substr(done, begin - done)});
    segments.push_back({token->id, text.substr(begin, end - begin)});
    done = end;
  }
  if (done < text.size()) segments.push_back({std::nullopt, text.substr(done)});
  return segments;
}

}  // namespace docmem::engine
