#pragma once

#include <string>
#include <string_view>

namespace docmem::engine {

// Rewrites an Oniguruma pattern (Ruby syntax) for PCRE2 so that both match the same. Throws
// kUnimplemented, with `field` as the field, for syntax that the two read differently.
std::string TranslateRegex(std::string_view pattern, const std::string& field);

}  // namespace docmem::engine
