#pragma once

#include <array>
#include <string_view>

namespace docmem::training {

/// What the base model is asked, behind a chunk of the document, to get a question on it; in turn,
/// so that the questions differ. Each is a question in the sense of the prompt format, so that the
/// model sees exactly what it sees when it is served. The question that comes back is then asked in
/// the same place, and the model's answer with the chunk in view is the answer to be learnt.
inline constexpr std::array<std::string_view, 6> kQuestionRequests = {
    "What is one short question that the document above answers? Write only the question.",
    "Write one question about a person, a place or a thing that the document above names. Write "
    "only the question.",
    "Write one question about a date, a number or an amount in the document above. Write only the "
    "question.",
    "Write one question that asks what something in the document above means. Write only the "
    "question.",
    "Write one question that asks how or why something in the document above happens. Write only "
    "the question.",
    "Write one question about a detail of the document above that is easy to miss. Write only the "
    "question."};

/// How the question is drawn; the answer is greedy.
inline constexpr double kQuestionTemperature = 0.8;
inline constexpr double kQuestionTopP = 0.95;
inline constexpr unsigned kQuestionTokens = 48;
inline constexpr unsigned kAnswerTokens = 96;

/// Part of the answer's content words (see words.h) that must stand in the chunk.
inline constexpr double kGroundedPart = 0.6;

}  // namespace docmem::training
