#pragma once

#include <string>
#include <string_view>

namespace docmem::server {

/// The trace id of a W3C `traceparent` header: 32 lower-case hexadecimal digits. Empty where the
/// header isn't one, so that nothing else a caller writes there gets into logs.
std::string TraceIdOf(std::string_view traceparent);

}  // namespace docmem::server
