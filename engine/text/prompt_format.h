#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace docmem::engine {

// An earlier question and its answer in the same conversation.
struct Turn {
  std::string question;
  std::string answer;
};

// The prompt around a document and a question:
//
//   head (with the system text) · document · bridge · question · tail · answer · end of turn
//
// Control tokens come from the format alone and go in by id. Everything between two control tokens,
// the format's own words and the user's text alike, is encoded as one string with EncodeUser (the
// document alone), so nothing that a user writes becomes a control token. Earlier turns stand
// between the document and the question. Immutable, thread-safe.
class PromptFormat {
 public:
  // The strings of a format; control tokens are written as in tokenizer.json. A format file is a
  // JSON object with exactly these keys.
  struct Strings {
    std::string name;
    std::string system_text;        // used where ingestion gives none
    std::string head;               // "{system}" once: the system text
    std::string bridge;             // up to the question; "{instruction}" once: instruction + "\n"
    std::string tail;               // up to where the answer starts
    std::string history_bridge;     // from an earlier answer to the next question, as bridge
    std::string history_tail;       // from an earlier question to its answer
    std::string end_of_turn;        // one added token
    std::vector<std::string> stop;  // further added tokens that end an answer; may be left out
  };

  // "chatml", "chatml-empty-think" (Qwen3), "llama3", "plain". Throws kInvalidArgument for another
  // name, kFailedPrecondition naming the token that the tokenizer lacks.
  static PromptFormat BuiltIn(std::string_view name, Tokenizer tokenizer);

  // The built-in format that fits the `chat_template` of tokenizer_config.json; "plain" for an
  // empty one. Throws kUnimplemented if none does (a format file helps), kFailedPrecondition as
  // above.
  static PromptFormat Choose(Tokenizer tokenizer, std::string_view chat_template);

  // Throws kInvalidArgument naming the key, kFailedPrecondition as above.
  static PromptFormat FromJson(std::string_view json, Tokenizer tokenizer);

  // The tokens before the document, with exactly one BOS where the tokenizer or the format asks
  // for one.
  std::vector<int32_t> HeadIds(std::string_view system_text) const;

  // The tokens from behind the document up to the answer's first. `instruction` may be empty; it
  // belongs to this question. Throws kInvalidArgument if a text isn't UTF-8.
  std::vector<int32_t> QuestionIds(std::span<const Turn> history, std::string_view instruction,
                                   std::string_view question) const;

  // An answer encoded alone, followed by the end of turn.
  std::vector<int32_t> AnswerIds(std::string_view answer) const;

  const std::string& name() const noexcept { return strings_.name; }
  const std::string& default_system_text() const noexcept { return strings_.system_text; }
  int32_t end_of_turn_id() const noexcept { return end_of_turn_id_; }

  // The ids that end an answer, the end of turn first; those of the model's config come on top.
  const std::vector<int32_t>& stop_ids() const noexcept { return stop_ids_; }

  // SHA-256 (hexadecimal) of all the strings; independent of the tokenizer.
  const std::string& digest() const noexcept { return digest_; }

 private:
  PromptFormat(Strings strings, Tokenizer tokenizer);

  int32_t ControlToken(const std::string& spelling) const;

  Strings strings_;
  Tokenizer tokenizer_;
  int32_t end_of_turn_id_ = -1;
  std::vector<int32_t> stop_ids_;
  std::string digest_;
};

}  // namespace docmem::engine
