#include "client/cli/answer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/progress_line.h"
#include "client/cli/ratio.h"

namespace docmem::cli {
namespace {

constexpr absl::Duration kAbortTimeout = absl::Seconds(1);

std::string WaitingText(const v1::Progress& progress) {
  std::string text = NameOf(progress.phase());
  if (progress.queue_position() > 0) {
    absl::StrAppend(&text, ", ", FormatCount(progress.queue_position(), "request"), " before this");
  }
  return absl::StrCat(text, ", ", FormatSeconds(progress.elapsed_seconds()));
}

// The broken stream ends the request by itself, unless something in between keeps it open.
void Abort(client::QueryClient* queries, const std::string& request_id) {
  v1::AbortRequest request;
  request.set_request_id(request_id);
  (void)queries->Abort(request, {.timeout = kAbortTimeout});
}

void PrintLogProbabilities(const client::Answer& answer, std::ostream& out) {
  for (const v1::TokenLogProbability& token : answer.log_probabilities) {
    out << absl::StrFormat("%8d  %.6f\n", token.token_id(), token.log_probability());
  }
}

}  // namespace

absl::StatusOr<client::Answer> AskAndShow(const Session& session, const v1::AskRequest& request) {
  client::QueryClient queries(session.connection());
  client::Answer answer;
  ProgressLine line(session.terminal());
  const bool streams = !session.json();
  const client::AskEvents events{
      .started = [&](const v1::Started& started) { answer.started = started; },
      .progress = [&](const v1::Progress& progress) { line.Show(WaitingText(progress)); },
      .delta =
          [&](const v1::Delta& delta) {
            line.Clear();
            answer.text += delta.text();
            answer.log_probabilities.insert(answer.log_probabilities.end(),
                                            delta.log_probabilities().begin(),
                                            delta.log_probabilities().end());
            if (!streams) return;
            const bool terminal = session.environment().out_is_terminal;
            session.out() << (terminal ? Printable(delta.text()) : delta.text()) << std::flush;
          }};
  absl::StatusOr<v1::Finished> finished = queries.Ask(request, events, session.call());
  line.Clear();
  const bool stopped = session.environment().stop.stop_requested();
  if (streams && !stopped && (finished.ok() || !answer.text.empty())) session.out() << std::endl;
  if (!finished.ok()) {
    const std::string& id = answer.started.request_id();
    if (stopped && !id.empty()) Abort(&queries, id);
    return finished.status();
  }
  answer.finished = *std::move(finished);
  if (streams) {
    PrintLogProbabilities(answer, session.out());
    if (session.terminal() != nullptr) session.Note(Summary(answer.started, answer.finished));
  }
  return answer;
}

std::string AnswerJson(const client::Answer& answer, bool log_probabilities) {
  std::vector<std::pair<std::string, std::string>> members = {
      {"started", ToJson(answer.started)},
      {"answer", JsonString(answer.text)},
      {"finished", ToJson(answer.finished)}};
  if (log_probabilities) {
    members.emplace_back("logProbabilities", JsonArrayOf(answer.log_probabilities));
  }
  return JsonObject(members);
}

std::string Summary(const v1::Started& started, const v1::Finished& finished) {
  std::string text = absl::StrCat("[", FormatCount(finished.answer_tokens(), "token"));
  if (finished.reason() == v1::Finished::REASON_LENGTH)
    absl::StrAppend(&text, ", cut by its length");
  if (finished.reason() == v1::Finished::REASON_STOP_STRING) {
    absl::StrAppend(&text, ", ended by a stop text");
  }
  absl::StrAppend(&text, " | ", NameOf(started.mode()), ", ratio ",
                  FormatRatio(started.ratio_ppm()));
  if (started.adapter_version() > 0) {
    absl::StrAppend(&text, ", adapter ", started.adapter_version());
  }
  absl::StrAppend(&text, " | first token after ", FormatSeconds(finished.first_token_seconds()),
                  ", ", FormatCount(finished.document_tokens_prefilled(), "document token"),
                  " prefilled]");
  return text;
}

}  // namespace docmem::cli
