#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <string>

namespace docmem::cli {

bool IsUtf8(const std::string& text);

/// Text of users made safe for a terminal: control characters but line feed and tab become visible,
/// so that no text can move the cursor or rename the window. Bytes that aren't UTF-8 become "?".
std::string Printable(const std::string& text);

/// The same for one line: line feeds and tabs become visible too.
std::string PrintableLine(const std::string& text);

/// Columns on a terminal; `text` is printable.
size_t DisplayWidth(const std::string& text);

std::string FormatBytes(uint64_t bytes);                           ///< "4.2 MB", powers of 1000
std::string FormatCount(uint64_t count, const std::string& noun);  ///< "1 token", "2 tokens"
std::string FormatSeconds(double seconds);  ///< "85 ms", "3.2 s", "12 min 5 s"
std::string FormatTime(const google::protobuf::Timestamp& time);  ///< local; "-" when unset

}  // namespace docmem::cli
