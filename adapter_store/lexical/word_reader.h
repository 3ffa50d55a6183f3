#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

struct sb_stemmer;

namespace docmem::store {

/// Finds the words of texts in any script and brings each to the form under which it is counted:
/// compatibility forms and case are folded, English endings are cut by Snowball's stemmer, English
/// function words (what, the, of) are left out. Scripts written without spaces (Chinese, Japanese,
/// Thai, Lao, Khmer, Burmese) give each pair of neighbouring characters. What isn't UTF-8 separates
/// words; of a word longer than 64 bytes only the beginning counts.
///
/// Not thread-safe. Takes time and memory in proportion to the text and the longest word.
class WordReader {
 public:
  WordReader();
  ~WordReader();
  WordReader(const WordReader&) = delete;
  WordReader& operator=(const WordReader&) = delete;

  /// In the text's order. A word is valid during its call.
  void Read(std::string_view text, absl::FunctionRef<void(std::string_view)> on_word);

 private:
  void Count(std::string_view raw, absl::FunctionRef<void(std::string_view)> on_word);

  struct Delete {
    void operator()(sb_stemmer* stemmer) const;
  };
  const std::unique_ptr<sb_stemmer, Delete> stemmer_;
  std::string folded_;
};

}  // namespace docmem::store
