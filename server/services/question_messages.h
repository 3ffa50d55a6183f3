#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "docmem/v1/query.pb.h"
#include "server/interceptors/call.h"
#include "server/query/question.h"

namespace docmem::server {

/// Checks a request for form and makes it a question of the caller. A request id is drawn where
/// the caller gave none, a seed too. INVALID_ARGUMENT naming the field; PERMISSION_DENIED for a
/// collection that isn't the caller's.
absl::StatusOr<Question> ToQuestion(const v1::AskRequest& request, Call& call);
absl::StatusOr<Question> ToQuestion(const v1::ScoreRequest& request, Call& call);

v1::Started ToMessage(const AnswerStarted& started);
v1::Progress ToMessage(const AnswerProgress& progress);
v1::Delta ToMessage(const AnswerDelta& delta, bool log_probabilities);
v1::Finished ToMessage(const AnswerFinished& finished);
v1::QuerySeconds SecondsOf(const AnswerFinished& finished);

/// Appends one entry per token of `delta`.
void AppendLogProbabilities(const AnswerDelta& delta,
                            google::protobuf::RepeatedPtrField<v1::TokenLogProbability>* out);

}  // namespace docmem::server
