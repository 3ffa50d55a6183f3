#include "engine/text/tokenizer.h"

#include "engine/formats/mapped_file.h"
#include "engine/text/stream_decoder.h"
#include "engine/text/tokenizer_tables.h"
#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

using TokenKind = TokenizerTables::TokenKind;

constexpr size_t kBytesBetweenChecks = 1 << 16;
constexpr size_t kMaxCachedPieces = 1 << 16;
constexpr size_t kMaxCachedPieceBytes = 64;

// One call's work. Pieces that came before in the same text are copied from the ids they got then.
class Encoder {
 public:
  Encoder(const TokenizerTables& tables, const CancelCheck& cancelled)
      : tables_(tables), cancelled_(cancelled) {}

  void Template(std::string_view text) {
    for (const Tokenizer::Segment& outer : tables_.raw_added.Split(text)) {
      if (outer.id) {
        ids_.push_back(*outer.id);
        continue;
      }
      const std::string normal = Normalize(outer.text);
      for (const Tokenizer::Segment& inner : tables_.normalized_added.Split(normal)) {
        if (inner.id) {
          ids_.push_back(*inner.id);
        } else {
          Plain(inner.text);
        }
      }
    }
  }

  void User(std::string_view text) { Plain(Normalize(text)); }

  std::vector<int32_t> TakeIds() { return std::move(ids_); }

 private:
  struct IdRange {
    size_t begin;
    size_t count;
  };

  std::string Normalize(std::string_view text) const {
    return tables_.nfc ? NormalizeNfc(text) : std::string(text);
  }

  void Plain(std::string_view text) {
    cache_.clear();
    tables_.pre_tokenizer.Split(text, [this](std::string_view piece) {
      CheckCancelled(piece.size());
      Piece(piece);
    });
  }

  void Piece(std::string_view piece) {
    if (const auto known = cache_.find(piece); known != cache_.end()) {
      for (size_t i = 0; i < known->second.count; ++i) {
        ids_.push_back(ids_[known->second.begin + i]);
      }
      return;
    }
    const size_t begin = ids_.size();
    tables_.bpe.Encode(piece, cancelled_, &scratch_, &ids_);
    if (piece.size() <= kMaxCachedPieceBytes && cache_.size() < kMaxCachedPieces) {
      cache_.emplace(piece, IdRange{begin, ids_.size() - begin});
    }
  }

  void CheckCancelled(size_t bytes) {
    unchecked_bytes_ += bytes;
    if (unchecked_bytes_ < kBytesBetweenChecks) return;
    unchecked_bytes_ = 0;
    if (cancelled_ && cancelled_()) ThrowCancelled("the encoding of a text was cancelled");
  }

  const TokenizerTables& tables_;
  const CancelCheck& cancelled_;
  std::vector<int32_t> ids_;
  std::unordered_map<std::string_view, IdRange> cache_;  // keys are views of the text in hand
  BpeModel::Scratch scratch_;
  size_t unchecked_bytes_ = 0;
};

}  // namespace

Tokenizer Tokenizer::Load(const std::filesystem::path& file) {
  return Parse(MappedFile::Open(file).text());
}

Tokenizer Tokenizer::Parse(std::string_view json) {
  return Tokenizer(std::make_shared<const TokenizerTables>(ParseTokenizerTables(json)));
}

std::vector<int32_t> Tokenizer::EncodeTemplate(std::string_view text,
                                               const CancelCheck& cancelled) const {
  RequireUtf8(text);
  Encoder encoder(*tables_, cancelled);
  encoder.Template(text);
  return encoder.TakeIds();
}

std::vector<int32_t> Tokenizer::EncodeUser(std::string_view text,
                                           const CancelCheck& cancelled) const {
  RequireUtf8(text);
  Encoder encoder(*tables_, cancelled);
  encoder.User(text);
  return encoder.TakeIds();
}

std::vector<Tokenizer::Segment> Tokenizer::SplitTemplate(std::string_view text) const {
  RequireUtf8(text);
  return tables_->exact_added.Split(text);
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  StreamDecoder decoder(*this);
  std::string text;
  for (const int32_t id : ids) text += decoder.Push(id);
  return text + decoder.Finish();
}

std::string_view Tokenizer::TokenBytes(int32_t id) const noexcept {
  if (id < 0 || id >= vocab_size()) return {};
  return tables_->tokens[id].bytes;
}

std::optional<int32_t> Tokenizer::TokenId(std::string_view spelling) const {
  const auto found = tables_->ids_by_spelling.find(std::string(spelling));
  if (found == tables_->ids_by_spelling.end()) return std::nullopt;
  return found->second;
}

bool Tokenizer::IsAdded(int32_t id) const noexcept {
  return id >= 0 && id < vocab_size() && tables_->tokens[id].kind >= TokenKind::kAdded;
}

bool Tokenizer::IsSpecial(int32_t id) const noexcept {
  return id >= 0 && id < vocab_size() && tables_->tokens[id].kind == TokenKind::kSpecial;
}

std::optional<int32_t> Tokenizer::bos_id() const noexcept { return tables_->bos_id; }

int32_t Tokenizer::vocab_size() const noexcept {
  return static_cast<int32_t>(tables_->tokens.size());
}

const std::string& Tokenizer::digest() const noexcept { return tables_->digest; }

}  // namespace docmem::engine
