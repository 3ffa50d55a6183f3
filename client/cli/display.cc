#include "client/cli/display.h"

#include <locale.h>
#include <wchar.h>
#include <wctype.h>

#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace docmem::cli {
namespace {

// Makes the C library read UTF-8 on this thread, whatever the user's locale.
class Utf8Scope {
 public:
  Utf8Scope()
      : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)), before_(uselocale(locale_)) {}
  ~Utf8Scope() {
    uselocale(before_);
    if (locale_ != nullptr) freelocale(locale_);
  }
  Utf8Scope(const Utf8Scope&) = delete;
  Utf8Scope& operator=(const Utf8Scope&) = delete;

 private:
  const locale_t locale_;
  const locale_t before_;
};

// Calls `each` for every character with its bytes; a byte that isn't UTF-8 is a character L'\0'.
void ForEachCharacter(const std::string& text,
                      const std::function<void(wchar_t, absl::string_view)>& each) {
  const Utf8Scope utf8;
  mbstate_t state{};
  for (size_t at = 0; at < text.size();) {
    wchar_t character = 0;
    size_t bytes = mbrtowc(&character, text.data() + at, text.size() - at, &state);
    if (bytes > text.size()) {
      state = {};
      character = 0;
      bytes = 1;
    } else if (bytes == 0) {
      bytes = 1;
    }
    each(character, absl::string_view(text).substr(at, bytes));
    at += bytes;
  }
}

std::string MakePrintable(const std::string& text, bool keep_white_space) {
  std::string out;
  ForEachCharacter(text, [&](wchar_t character, absl::string_view bytes) {
    const bool white_space = character == L'\n' || character == L'\t';
    if (white_space && keep_white_space) {
      absl::StrAppend(&out, bytes);
    } else if (character == L'\n') {
      out += "\\n";
    } else if (character == L'\t') {
      out += "\\t";
    } else if (character == L'\0') {
      out += bytes == absl::string_view("\0", 1) ? "\\x00" : "?";
    } else if (character < 0x20 || (character >= 0x7F && character < 0xA0)) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned>(character));
    } else {
      absl::StrAppend(&out, bytes);
    }
  });
  return out;
}

}  // namespace

bool IsUtf8(const std::string& text) {
  bool valid = true;
  ForEachCharacter(text, [&](wchar_t character, absl::string_view bytes) {
    valid = valid && (character != L'\0' || bytes == absl::string_view("\0", 1));
  });
  return valid;
}

std::string Printable(const std::string& text) { return MakePrintable(text, true); }

std::string PrintableLine(const std::string& text) { return MakePrintable(text, false); }

size_t DisplayWidth(const std::string& text) {
  size_t width = 0;
  ForEachCharacter(text, [&](wchar_t character, absl::string_view) {
    const int columns = wcwidth(character);
    width += columns > 0 ? static_cast<size_t>(columns) : 0;
  });
  return width;
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  for (const char* unit : {"kB", "MB", "GB", "TB", "PB"}) {
    value /= 1000;
    if (value < 999.95) return absl::StrFormat("%.1f %s", value, unit);
  }
  return absl::StrFormat("%.1f EB", value / 1000);
}

std::string FormatCount(uint64_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string FormatSeconds(double seconds) {
  if (seconds < 0.9995) return absl::StrFormat("%.0f ms", 1000 * seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (seconds < 99.95) {
    const bool is_whole = std::abs(seconds - static_cast<double>(whole)) < 0.05;
    return absl::StrFormat("%.*f s", is_whole ? 0 : 1, seconds);
  }
  if (whole < 3600) return absl::StrFormat("%d min %d s", whole / 60, whole % 60);
  if (whole < 86400) return absl::StrFormat("%d h %d min", whole / 3600, whole % 3600 / 60);
  return absl::StrFormat("%d d %d h", whole / 86400, whole % 86400 / 3600);
}

std::string FormatTime(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0 && time.nanos() == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixSeconds(time.seconds()),
                          absl::LocalTimeZone());
}

}  // namespace docmem::cli
