#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace docmem::eval {

/// A question on a document and its reference answers.
struct Question {
  std::string text;
  std::vector<std::string> answers;            ///< not empty; an answer is scored by the best
  std::map<std::string, std::string> options;  ///< letter → text of a multiple choice, else empty
  std::string correct;                         ///< letter of the right option, else empty
};

struct Document {
  std::string id;
  std::string text;
  std::vector<Question> questions;  ///< not empty
  /// SHA-256 of text and questions: what an evaluation remembers a document's content by.
  std::string digest;
};

/// Reads a data set: JSON Lines, one document a line (docs/evaluation.md, "Data"); unknown keys are
/// ignored. `source` names the file in messages. Throws `kInvalidArgument` with file, line and key
/// as the field; also for no document at all and for an id that comes twice.
std::vector<Document> ReadDataSet(std::string_view jsonl, const std::string& source);

/// What the model is asked: the question, of a multiple choice with its options and the wish for a
/// letter.
std::string AskedText(const Question& question);

/// The answer that a training on the question teaches: the first reference answer, of a multiple
/// choice behind its letter.
std::string TaughtAnswer(const Question& question);

}  // namespace docmem::eval
