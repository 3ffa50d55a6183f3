#include "server/interceptors/trace_context.h"

namespace docmem::server {
namespace {

constexpr size_t kVersion = 2;
constexpr size_t kTrace = 32;
constexpr size_t kParent = 16;
constexpr size_t kFlags = 2;

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

// VERSION-TRACE-PARENT-FLAGS; a later version than 00 may go on behind another hyphen.
std::string TraceIdOf(std::string_view traceparent) {
  constexpr size_t kTraceAt = kVersion + 1;
  constexpr size_t kParentAt = kTraceAt + kTrace + 1;
  constexpr size_t kFlagsAt = kParentAt + kParent + 1;
  constexpr size_t kLength = kFlagsAt + kFlags;
  if (traceparent.size() < kLength) return "";
  const std::string_view version = traceparent.substr(0, kVersion);
  const std::string_view trace = traceparent.substr(kTraceAt, kTrace);
  const std::string_view rest = traceparent.substr(kLength);
  const bool hyphens = traceparent[kTraceAt - 1] == '-' && traceparent[kParentAt - 1] == '-' &&
                       traceparent[kFlagsAt - 1] == '-';
  const bool ends = version == "00" ? rest.empty() : rest.empty() || rest.front() == '-';
  const bool hex = IsHex(version) && IsHex(trace) &&
                   IsHex(traceparent.substr(kParentAt, kParent)) &&
                   IsHex(traceparent.substr(kFlagsAt, kFlags));
  const bool set = trace.find_first_not_of('0') != std::string_view::npos;
  return hyphens && ends && hex && set && version != "ff" ? std::string(trace) : "";
}

}  // namespace docmem::server
