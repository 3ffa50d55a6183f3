#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace docmem::client {

/// ROUGE-L F-measure of an answer against a reference, 0 to 1 (Lin 2004): the longest common
/// subsequence of their tokens, as the library rouge-score 0.1.2 computes it without a stemmer.
/// Tokens are runs of a-z and 0-9 of the lower-cased UTF-8 text. 0 where either has no tokens.
double RougeL(absl::string_view reference, absl::string_view answer);

/// The best over several references; 0 for none.
double BestRougeL(const std::vector<std::string>& references, absl::string_view answer);

}  // namespace docmem::client
