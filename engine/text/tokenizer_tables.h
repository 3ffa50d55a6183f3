#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/text/added_tokens.h"
#include "engine/text/bpe.h"
#include "engine/text/pre_tokenizer.h"

namespace docmem::engine {

// Everything that a tokenizer.json says. Immutable once it is parsed.
struct TokenizerTables {
  enum class TokenKind : uint8_t { kNone, kOrdinary, kAdded, kSpecial };

  struct Token {
    TokenKind kind = TokenKind::kNone;
    std::string bytes;  // what it decodes to
  };

  bool nfc;
  PreTokenizer pre_tokenizer;
  BpeModel bpe;
  AddedTokens raw_added;         // looked for in the text as it comes
  AddedTokens normalized_added;  // looked for in the normalised text
  AddedTokens exact_added;       // all of them, without flags
  std::vector<Token> tokens;     // [vocab_size] by id
  std::unordered_map<std::string, int32_t> ids_by_spelling;
  std::optional<int32_t> bos_id;
  std::string digest;
};

// Throws as Tokenizer::Parse does.
TokenizerTables ParseTokenizerTables(std::string_view json);

}  // namespace docmem::engine
