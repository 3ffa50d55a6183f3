#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/session.h"
#include "client/query_client.h"
#include "docmem/v1/query.pb.h"

namespace docmem::cli {

/// Asks. For people the answer streams to the output, with what it cost beside it on a terminal;
/// with JSON nothing is printed yet. When the user stops it, the daemon is told so too.
absl::StatusOr<client::Answer> AskAndShow(const Session& session, const v1::AskRequest& request);

/// {"started", "answer", "finished"}, and "logProbabilities" where they were asked for.
std::string AnswerJson(const client::Answer& answer, bool log_probabilities);

/// One line on a finished answer, for people.
std::string Summary(const v1::Started& started, const v1::Finished& finished);

}  // namespace docmem::cli
