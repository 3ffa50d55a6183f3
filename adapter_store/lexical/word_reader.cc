#include "adapter_store/lexical/word_reader.h"

#include <libstemmer.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/ascii.h"

namespace docmem::store {
namespace {

using OnWord = absl::FunctionRef<void(std::string_view)>;

constexpr size_t kMaxWordBytes = 64;

// They say nothing about a document, and in a small collection their rarity doesn't show that.
constexpr std::string_view kFunctionWords[] = {
    "a",     "an",   "and",   "are",   "as",   "at",   "be",    "been", "but",   "by",
    "did",   "do",   "does",  "for",   "from", "had",  "has",   "have", "he",    "her",
    "him",   "his",  "how",   "i",     "if",   "in",   "into",  "is",   "it",    "its",
    "many",  "me",   "much",  "my",    "of",   "on",   "or",    "our",  "she",   "so",
    "than",  "that", "the",   "their", "them", "then", "there", "they", "these", "this",
    "those", "to",   "us",    "was",   "we",   "were", "what",  "when", "where", "which",
    "who",   "whom", "whose", "why",   "will", "with", "would", "you",  "your"};

bool IsFunctionWord(std::string_view word) {
  return std::find(std::begin(kFunctionWords), std::end(kFunctionWords), word) !=
         std::end(kFunctionWords);
}

enum class Kind { kSeparator, kWord, kUnspaced, kApostrophe, kInvisible };

bool IsUnspaced(utf8proc_int32_t point) {
  struct Range {
    utf8proc_int32_t first, last;
  };
  constexpr Range kRanges[] = {{0x0E00, 0x0EFF}, {0x1000, 0x109F},   {0x1780, 0x17FF},
                               {0x2E80, 0x312F}, {0x31A0, 0x9FFF},   {0xF900, 0xFAFF},
                               {0xFF66, 0xFF9F}, {0x1B000, 0x1B16F}, {0x20000, 0x3FFFF}};
  return std::any_of(std::begin(kRanges), std::end(kRanges), [point](const Range& range) {
    return range.first <= point && point <= range.last;
  });
}

Kind KindOf(utf8proc_int32_t point) {
  constexpr utf8proc_int32_t kSoftHyphen = 0xAD;
  constexpr utf8proc_int32_t kNonJoiner = 0x200C;
  constexpr utf8proc_int32_t kJoiner = 0x200D;
  constexpr utf8proc_int32_t kRightQuote = 0x2019;
  if (point == '\'' || point == kRightQuote) return Kind::kApostrophe;
  if (point == kSoftHyphen || point == kNonJoiner || point == kJoiner) return Kind::kInvisible;
  const utf8proc_category_t category = utf8proc_category(point);
  const bool in_word = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
  if (!in_word) return Kind::kSeparator;
  return IsUnspaced(point) ? Kind::kUnspaced : Kind::kWord;
}

// Cuts a text into words as they stand there.
class Cutter {
 public:
  // `on_word` must outlive it.
  explicit Cutter(OnWord on_word) : on_word_(on_word) {}

  void Take(Kind kind, std::string_view character) {
    if (kind == Kind::kInvisible) return;
    if (kind != Kind::kUnspaced) EndRun();
    if (kind == Kind::kWord) return Append(character);
    if (kind == Kind::kApostrophe && !word_.empty()) {
      apostrophe_ = true;
      return;
    }
    EndWord();
    if (kind == Kind::kUnspaced) Pair(character);
  }

  void End() {
    EndWord();
    EndRun();
  }

 private:
  void Append(std::string_view character) {
    if (apostrophe_ && word_.size() < kMaxWordBytes) word_ += '\'';
    apostrophe_ = false;
    if (word_.size() + character.size() <= kMaxWordBytes) word_ += character;
  }

  void EndWord() {
    if (!word_.empty()) on_word_(word_);
    word_.clear();
    apostrophe_ = false;
  }

  void Pair(std::string_view character) {
    if (!last_.empty()) on_word_(last_ + std::string(character));
    paired_ = !last_.empty();
    last_ = character;
  }

  void EndRun() {
    if (!last_.empty() && !paired_) on_word_(last_);
    last_.clear();
    paired_ = false;
  }

  const OnWord on_word_;
  std::string word_;
  bool apostrophe_ = false;  // stands behind `word_`, belongs to it if a letter follows
  std::string last_;         // of a run without spaces
  bool paired_ = false;
};

std::string Fold(std::string_view word) {
  if (std::all_of(word.begin(), word.end(), absl::ascii_isascii)) {
    std::string lower(word);
    absl::AsciiStrToLower(&lower);
    return lower;
  }
  utf8proc_uint8_t* folded = nullptr;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(word.data()),
                   static_cast<utf8proc_ssize_t>(word.size()), &folded, options);
  if (size < 0) return std::string(word);
  std::string result(reinterpret_cast<const char*>(folded), static_cast<size_t>(size));
  std::free(folded);
  return result;
}

}  // namespace

void WordReader::Delete::operator()(sb_stemmer* stemmer) const { sb_stemmer_delete(stemmer); }

WordReader::WordReader() : stemmer_(sb_stemmer_new("english", nullptr)) {}
WordReader::~WordReader() = default;

void WordReader::Read(std::string_view text, OnWord on_word) {
  const auto count = [&](std::string_view raw) { Count(raw, on_word); };
  Cutter cutter(count);
  while (!text.empty()) {
    utf8proc_int32_t point = 0;
    const utf8proc_ssize_t size =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                         static_cast<utf8proc_ssize_t>(text.size()), &point);
    const size_t taken = size > 0 ? static_cast<size_t>(size) : 1;
    cutter.Take(size > 0 ? KindOf(point) : Kind::kSeparator, text.substr(0, taken));
    text.remove_prefix(taken);
  }
  cutter.End();
}

void WordReader::Count(std::string_view raw, OnWord on_word) {
  folded_ = Fold(raw);
  std::string_view word = folded_;
  if (word.ends_with("'s")) word.remove_suffix(2);
  if (word.empty() || IsFunctionWord(word)) return;
  const sb_symbol* stem =
      stemmer_ == nullptr
          ? nullptr
          : sb_stemmer_stem(stemmer_.get(), reinterpret_cast<const sb_symbol*>(word.data()),
                            static_cast<int>(word.size()));
  if (stem == nullptr) return on_word(word);  // no memory for it
  on_word({reinterpret_cast<const char*>(stem),
           static_cast<size_t>(sb_stemmer_length(stemmer_.get()))});
}

}  // namespace docmem::store
