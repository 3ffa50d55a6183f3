#include "engine/text/stream_decoder.h"

#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

std::string StreamDecoder::Push(int32_t id) {
  pending_ += tokenizer_.TokenBytes(id);
  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = NextUtf8(rest);
    if (step.kind == Utf8Step::Kind::kIncomplete) break;
    if (step.kind == Utf8Step::Kind::kValid) {
      text += rest.substr(0, step.bytes);
    } else {
      text += kReplacement;
      replaced_bytes_ += static_cast<int64_t>(step.bytes);
    }
    rest.remove_prefix(step.bytes);
  }
  pending_ = std::string(rest);
  return text;
}

std::string StreamDecoder::Finish() {
  if (pending_.empty()) return "";
  replaced_bytes_ += static_cast<int64_t>(pending_.size());
  pending_.clear();
  return std::string(kReplacement);
}

}  // namespace docmem::engine
