#pragma once

#include <set>
#include <string>
#include <string_view>

namespace docmem::training {

/// The words of a text that carry its content: lower-cased (ASCII) runs of letters, digits and
/// whatever isn't ASCII, of at least four bytes or with a digit; all runs where there is none of
/// these. Deterministic and without any language's word list.
std::set<std::string> ContentWords(std::string_view text);

/// Which part of `words` is in `source`, 0 … 1; 0 for no words.
double SharedPart(const std::set<std::string>& words, const std::set<std::string>& source);

/// All runs, joined by one space: equal for texts that differ in case, space and punctuation only.
std::string Normalised(std::string_view text);

}  // namespace docmem::training
