#include "client/cli/build_arguments.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/display.h"
#include "client/cli/local_file.h"
#include "client/cli/names.h"
#include "client/cli/ratio.h"

namespace docmem::cli {
namespace {

constexpr uint64_t kMaxSystemTextBytes = 8192;

// Comma separated.
Value Profiles(std::vector<v1::Profile>* target) {
  return {.placeholder = "PROFILE,...",
          .choices = NamesOf(*v1::Profile_descriptor()),
          .assign = [target](const std::string& text) {
            for (const auto& part : absl::StrSplit(text, ',')) {
              const auto number = ParseName(*v1::Profile_descriptor(), std::string(part));
              if (!number.ok()) return number.status();
              target->push_back(static_cast<v1::Profile>(*number));
            }
            return absl::OkStatus();
          }};
}

}  // namespace

void BuildArguments::Declare(ArgumentList* arguments) {
  arguments->Option("--ratio", Ratios(&ratio_ppm_),
                    "Build a cache for each of these compression ratios (part of the document's "
                    "tokens that is evicted, 0 to 1); else the collection's default");
  arguments->Option("--profile", Profiles(&profiles_),
                    "Build every ratio with each of these eviction profiles; else compactor");
  arguments->Option("--kv-dtype", OneOf("DTYPE", &kv_dtype_),
                    "Number format of the stored keys and values; else the model's");
  Value system_text = Text("TEXT", &system_text_);
  system_text.assign = [this, assign = system_text.assign](const std::string& text) {
    system_text_set_ = true;
    return assign(text);
  };
  arguments->Option("--system-text", system_text,
                    "System text before the document; else the prompt format's own");
  arguments->Option("--system-text-file", Path("FILE", &system_text_file_),
                    "File with the system text");
}

absl::StatusOr<std::string> BuildArguments::SystemText() const {
  if (system_text_file_.empty()) return system_text_;
  if (system_text_set_) {
    return UsageError("--system-text and --system-text-file exclude each other");
  }
  absl::StatusOr<std::string> text = ReadLocalFile(system_text_file_, kMaxSystemTextBytes);
  if (text.ok() && !IsUtf8(*text)) {
    return absl::InvalidArgumentError(absl::StrCat(system_text_file_, " isn't valid UTF-8"));
  }
  return text;
}

void ShowBuildProgress(const v1::BuildProgress& progress, ProgressLine* line) {
  const std::string elapsed = FormatSeconds(progress.elapsed_seconds());
  switch (progress.phase()) {
    case v1::BuildProgress::PHASE_RECEIVING:
      return line->ShowBar("sending", progress.fraction());
    case v1::BuildProgress::PHASE_PREFILLING:
      return line->ShowBar(
          "prefilling", progress.fraction(),
          absl::StrCat(FormatCount(progress.context_tokens(), "token"), ", ", elapsed));
    default:
      return line->Show(absl::StrCat(NameOf(progress.phase()), ", ", elapsed));
  }
}

}  // namespace docmem::cli
