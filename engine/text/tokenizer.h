#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/formats/error.h"

namespace docmem::engine {

struct TokenizerTables;

// Asked now and then during a long encode; true stops it with kCancelled. May be empty.
using CancelCheck = std::function<bool()>;

// A byte-level BPE tokenizer as a Hugging Face `tokenizer.json` describes it. A handle to an
// immutable table: cheap to copy, thread-safe.
//
// Understood: normaliser none or NFC; pre-tokenisers Split (regex or string, isolated), Digits,
// ByteLevel and Sequences of them that end in ByteLevel; model BPE with `ignore_merges`; added
// tokens with all their flags; post-processors that add nothing or one token in front; decoder
// ByteLevel. Everything else is refused by name.
class Tokenizer {
 public:
  // A piece of a template: a control token, or text that isn't one.
  struct Segment {
    std::optional<int32_t> id;
    std::string_view text;  // refers to the argument; of a control token too
  };

  // Throws kInvalidArgument for malformed files and kUnimplemented for what isn't understood, both
  // with the JSON path as the field; Load also as MappedFile::Open does.
  static Tokenizer Load(const std::filesystem::path& file);
  static Tokenizer Parse(std::string_view json);

  // The ids of text that *we* wrote: the spellings of added tokens become these tokens. Equals
  // `tokenizers`' encode(text, add_special_tokens=False). Throws kInvalidArgument if the text isn't
  // UTF-8, kCancelled.
  std::vector<int32_t> EncodeTemplate(std::string_view text,
                                      const CancelCheck& cancelled = {}) const;

  // The ids of text from elsewhere: no spelling of it becomes an added token, marked special or
  // not. Equals EncodeTemplate of the same file without `added_tokens`. Time is O(n log n) in the
  // longest piece and linear otherwise; memory about 40 bytes per byte of the longest piece.
  // Throws as EncodeTemplate does.
  std::vector<int32_t> EncodeUser(std::string_view text, const CancelCheck& cancelled = {}) const;

  // Cuts a template into its added tokens (spelled exactly, whatever their flags) and the text
  // between them. The view must stay alive as long as the segments.
  std::vector<Segment> SplitTemplate(std::string_view text) const;

  // The text of the ids without special tokens; always valid UTF-8: U+FFFD stands for what isn't.
  // Ids that no token has decode to nothing. Equals what StreamDecoder gives in pieces.
  std::string Decode(std::span<const int32_t> ids) const;

  // The bytes that one id stands for, which may be part of a character; empty for special tokens
  // and unknown ids. Lives as long as any copy of the tokenizer.
  std::string_view TokenBytes(int32_t id) const noexcept;

  // The id of a token by its spelling in the file ("<|im_end|>", "Ġthe").
  std::optional<int32_t> TokenId(std::string_view spelling) const;

  bool IsAdded(int32_t id) const noexcept;    // any added token
  bool IsSpecial(int32_t id) const noexcept;  // an added token that is marked special

  // The one token that the file's post-processor puts in front of a text, if any.
  std::optional<int32_t> bos_id() const noexcept;

  // One more than the highest id; a model's embedding may have more rows.
  int32_t vocab_size() const noexcept;

  // SHA-256 of the file's bytes, in hexadecimal.
  const std::string& digest() const noexcept;

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerTables> tables) : tables_(std::move(tables)) {}

  std::shared_ptr<const TokenizerTables> tables_;
};

}  // namespace docmem::engine
