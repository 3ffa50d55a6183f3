#include "client/cli/session.h"

#include "absl/strings/str_cat.h"
#include "client/cli/display.h"
#include "client/cli/json.h"

namespace docmem::cli {
namespace {

constexpr absl::Duration kWorthTelling = absl::Seconds(1);

}  // namespace

client::CallOptions Session::call() const {
  client::CallOptions options{.timeout = settings_.timeout, .stop = environment_.stop};
  if (terminal() != nullptr) {
    options.on_retry = [this](const client::RetryNotice& notice) {
      if (notice.delay < kWorthTelling) return;
      Note(absl::StrCat(notice.why.message(), "; trying again in ",
                        FormatSeconds(absl::ToDoubleSeconds(notice.delay))));
    };
  }
  return options;
}

void Session::Note(const std::string& text) const {
  if (!json()) err() << PrintableLine(text) << '\n';
}

void Session::PrintJson(const google::protobuf::Message& message) const {
  PrintJson(ToJson(message));
}

}  // namespace docmem::cli
