#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace docmem::engine {

/// The shortest decimal text that reads back as the same number, independent of the locale.
std::string NumberText(double value);

/// The whole text as a finite number / an integer; nothing if it isn't one.
std::optional<double> ParseNumber(std::string_view text);
std::optional<int64_t> ParseInteger(std::string_view text);

}  // namespace docmem::engine
