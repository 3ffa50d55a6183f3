#include "engine/text/tokenizer_tables.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "engine/formats/digest.h"
#include "engine/formats/json_fields.h"
#include "engine/text/byte_alphabet.h"
#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

constexpr int64_t kMaxId = (1 << 20) - 1;
constexpr size_t kMaxAddedTokenBytes = 256;
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

using SpellingMap = std::unordered_map<std::string, int32_t>;

std::string ElementPath(const JsonFields& fields, std::string_view key, size_t index) {
  return fields.Path(key) + "[" + std::to_string(index) + "]";
}

// Calls `visit` for the component under `key`, or for the members of a Sequence of them.
template <typename Visit>
void ForEachComponent(const JsonFields& component, std::string_view list_key, const Visit& visit) {
  if (component.String("type") != "Sequence") return visit(component);
  size_t index = 0;
  for (const Json& member : component.Array(list_key)) {
    ForEachComponent(JsonFields(member, ElementPath(component, list_key, index++)), list_key,
                     visit);
  }
}

[[noreturn]] void RefuseType(const JsonFields& component, const char* understood) {
  ThrowUnimplemented(component.Path("type"),
                     "is \"" + component.String("type") + "\"; understood is " + understood);
}

bool ParseNormalizer(const JsonFields& root) {
  bool nfc = false;
  if (const auto normalizer = root.OptionalObject("normalizer")) {
    ForEachComponent(*normalizer, "normalizers", [&](const JsonFields& component) {
      if (component.String("type") != "NFC") RefuseType(component, "NFC");
      nfc = true;
    });
  }
  return nfc;
}

Regex ParseSplit(const JsonFields& split) {
  const std::string behavior = split.String("behavior");
  if (behavior != "Isolated") {
    ThrowUnimplemented(split.Path("behavior"), "is \"" + behavior + "\"; understood is Isolated");
  }
  const JsonFields pattern = split.Object("pattern");
  if (const auto literal = pattern.OptionalString("String")) {
    return Regex::Literal(*literal, pattern.Path("String"));
  }
  return Regex::Compile(pattern.String("Regex"), pattern.Path("Regex"));
}

PreTokenizer ParsePreTokenizer(const JsonFields& root) {
  std::vector<Regex> steps;
  bool byte_level = false;
  ForEachComponent(root.Object("pre_tokenizer"), "pretokenizers", [&](const JsonFields& step) {
    const std::string type = step.String("type");
    if (byte_level) {
      ThrowUnimplemented(step.Path("type"), "nothing may come behind ByteLevel");
    } else if (type == "Split") {
      steps.push_back(ParseSplit(step));
    } else if (type == "Digits") {
      steps.push_back(
          Regex::CompilePcre2(step.Bool("individual_digits") ? R"(\p{N})" : R"(\p{N}+)", ""));
    } else if (type == "ByteLevel") {
      byte_level = true;
      if (step.Bool("add_prefix_space")) {
        ThrowUnimplemented(step.Path("add_prefix_space"), "is true, understood is false");
      }
      if (step.OptionalBool("use_regex").value_or(true)) {
        steps.push_back(Regex::Compile(kByteLevelPattern, step.Path("use_regex")));
      }
    } else {
      RefuseType(step, "Split, Digits, ByteLevel or Sequence");
    }
  });
  if (!byte_level) ThrowUnimplemented(root.Path("pre_tokenizer"), "has no ByteLevel");
  return PreTokenizer(std::move(steps));
}

void CheckDecoder(const JsonFields& root) {
  ForEachComponent(root.Object("decoder"), "decoders", [](const JsonFields& decoder) {
    if (decoder.String("type") != "ByteLevel") RefuseType(decoder, "ByteLevel");
  });
}

std::vector<AddedToken> ParseAddedTokens(const JsonFields& root) {
  std::vector<AddedToken> tokens;
  if (!root.Has("added_tokens")) return tokens;
  for (const Json& element : root.Array("added_tokens")) {
    const JsonFields fields(element, ElementPath(root, "added_tokens", tokens.size()));
    AddedToken token{.id = static_cast<int32_t>(fields.Int("id", 0, kMaxId)),
                     .content = fields.String("content"),
                     .single_word = fields.OptionalBool("single_word").value_or(false),
                     .lstrip = fields.OptionalBool("lstrip").value_or(false),
                     .rstrip = fields.OptionalBool("rstrip").value_or(false),
                     .normalized = fields.OptionalBool("normalized").value_or(false),
                     .special = fields.OptionalBool("special").value_or(false)};
    if (token.content.empty() || token.content.size() > kMaxAddedTokenBytes) {
      ThrowInvalidArgument(fields.Path("content"), "must have from 1 to 256 bytes");
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// Fails if a spelling is given two ids or two spellings share one.
void CheckAddedTokens(const std::vector<AddedToken>& added, const SpellingMap& vocabulary,
                      const std::unordered_set<int32_t>& vocabulary_ids, const JsonFields& root) {
  std::unordered_set<std::string> contents;
  std::unordered_set<int32_t> ids;
  for (size_t i = 0; i < added.size(); ++i) {
    const auto known = vocabulary.find(added[i].content);
    const bool id_agrees = known != vocabulary.end() ? known->second == added[i].id
                                                     : !vocabulary_ids.contains(added[i].id);
    if (!id_agrees || !ids.insert(added[i].id).second ||
        !contents.insert(added[i].content).second) {
      ThrowInvalidArgument(ElementPath(root, "added_tokens", i),
                           "its id or content belongs to another token too");
    }
  }
}

void RefuseModelOptions(const JsonFields& model) {
  if (model.String("type") != "BPE") RefuseType(model, "BPE");
  if (model.OptionalBool("byte_fallback").value_or(false)) {
    ThrowUnimplemented(model.Path("byte_fallback"),
                       "is true: SentencePiece-style tokenizers aren't supported");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.OptionalString(key).value_or("").empty()) {
      ThrowUnimplemented(model.Path(key), "isn't empty");
    }
  }
  if (model.OptionalNumber("dropout").value_or(0) != 0) {
    ThrowUnimplemented(model.Path("dropout"), "isn't 0");
  }
}

SpellingMap ParseVocabulary(const JsonFields& model, std::unordered_set<int32_t>* ids) {
  const JsonFields fields = model.Object("vocab");
  SpellingMap vocabulary;
  vocabulary.reserve(fields.json().size());
  for (const auto& [spelling, value] : fields.json().items()) {
    const auto id = static_cast<int32_t>(fields.Int(spelling, 0, kMaxId));
    if (!ids->insert(id).second) {
      ThrowInvalidArgument(fields.Path(spelling),
                           "has the id " + std::to_string(id) + ", as another token has");
    }
    vocabulary.emplace(spelling, id);
  }
  return vocabulary;
}

std::pair<std::string, std::string> ParsePair(const Json& merge, const std::string& path) {
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  ThrowInvalidArgument(path, "must be \"a b\" or [\"a\", \"b\"]");
}

std::vector<BpeTables::Merge> ParseMerges(const JsonFields& model, const SpellingMap& vocabulary) {
  std::vector<BpeTables::Merge> merges;
  size_t index = 0;
  for (const Json& element : model.Array("merges")) {
    const std::string path = ElementPath(model, "merges", index++);
    const auto [left, right] = ParsePair(element, path);
    const auto id_of = [&](const std::string& spelling) {
      const auto found = vocabulary.find(spelling);
      if (found == vocabulary.end()) {
        ThrowInvalidArgument(path, "the token \"" + spelling + "\" isn't in the vocabulary");
      }
      return found->second;
    };
    merges.push_back({id_of(left), id_of(right), id_of(left + right)});
  }
  return merges;
}

BpeTables ParseBpe(const JsonFields& model, const SpellingMap& vocabulary) {
  BpeTables tables{.byte_ids = {}, .merges = ParseMerges(model, vocabulary), .whole_pieces = {}};
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelling;
    AppendUtf8(ByteToCharacter(static_cast<unsigned char>(byte)), &spelling);
    const auto found = vocabulary.find(spelling);
    tables.byte_ids[byte] = found == vocabulary.end() ? -1 : found->second;
    if (tables.byte_ids[byte] < 0 && model.Has("unk_token")) {
      ThrowUnimplemented(model.Path("unk_token"), "is set, but the vocabulary lacks some bytes");
    }
  }
  if (model.OptionalBool("ignore_merges").value_or(false)) {
    for (const auto& [spelling, id] : vocabulary) {
      if (auto bytes = SpellingToBytes(spelling)) tables.whole_pieces.emplace(*bytes, id);
    }
  }
  return tables;
}

// Text from users must never become a special token, whatever the file's merges say.
void GuardSpecialTokens(const std::vector<AddedToken>& added, const JsonFields& root,
                        BpeTables* tables) {
  std::unordered_set<int32_t> special;
  std::unordered_set<int32_t> reachable(tables->byte_ids.begin(), tables->byte_ids.end());
  for (const BpeTables::Merge& merge : tables->merges) reachable.insert(merge.merged);
  for (size_t i = 0; i < added.size(); ++i) {
    if (!added[i].special) continue;
    if (reachable.contains(added[i].id)) {
      ThrowInvalidArgument(ElementPath(root, "added_tokens", i),
                           "is special, but plain text can become this token");
    }
    special.insert(added[i].id);
  }
  std::erase_if(tables->whole_pieces,
                [&](const auto& piece) { return special.contains(piece.second); });
}

std::optional<int32_t> ParseTemplateProcessing(const JsonFields& processor) {
  std::optional<int32_t> bos;
  size_t index = 0;
  for (const Json& element : processor.Array("single")) {
    const JsonFields item(element, ElementPath(processor, "single", index++));
    if (item.Has("Sequence")) continue;
    const std::string name = item.Object("SpecialToken").String("id");
    const auto ids = processor.Object("special_tokens").Object(name).Ints("ids", 0, kMaxId);
    if (index != 1 || ids.size() != 1) {
      ThrowUnimplemented(processor.Path("single"),
                         "adds more than one token in front of the text, or one behind it");
    }
    bos = static_cast<int32_t>(ids[0]);
  }
  return bos;
}

std::optional<int32_t> ParsePostProcessor(const JsonFields& root) {
  std::optional<int32_t> bos;
  if (const auto processor = root.OptionalObject("post_processor")) {
    ForEachComponent(*processor, "processors", [&](const JsonFields& component) {
      const std::string type = component.String("type");
      if (type == "TemplateProcessing") {
        bos = ParseTemplateProcessing(component);
      } else if (type != "ByteLevel") {
        RefuseType(component, "ByteLevel, TemplateProcessing or Sequence");
      }
    });
  }
  return bos;
}

std::vector<TokenizerTables::Token> MakeTokens(const SpellingMap& vocabulary,
                                               const std::vector<AddedToken>& added) {
  using Kind = TokenizerTables::TokenKind;
  int32_t size = 0;
  for (const auto& [spelling, id] : vocabulary) size = std::max(size, id + 1);
  for (const AddedToken& token : added) size = std::max(size, token.id + 1);
  std::vector<TokenizerTables::Token> tokens(size);
  const auto decoded = [](const std::string& spelling) {
    return SpellingToBytes(spelling).value_or(spelling);
  };
  for (const auto& [spelling, id] : vocabulary) {
    tokens[id] = {Kind::kOrdinary, decoded(spelling)};
  }
  for (const AddedToken& token : added) {
    tokens[token.id] = {token.special ? Kind::kSpecial : Kind::kAdded,
                        token.special ? "" : decoded(token.content)};
  }
  return tokens;
}

// The added tokens for one pass: those with or without `normalized`.
AddedTokens Select(const std::vector<AddedToken>& added, bool normalized, bool nfc) {
  std::vector<AddedToken> selected;
  for (const AddedToken& token : added) {
    if (token.normalized != normalized) continue;
    selected.push_back(token);
    if (normalized && nfc) selected.back().content = NormalizeNfc(token.content);
  }
  return AddedTokens(std::move(selected));
}

AddedTokens WithoutFlags(const std::vector<AddedToken>& added) {
  std::vector<AddedToken> plain;
  for (const AddedToken& token : added) plain.push_back({.id = token.id, .content = token.content});
  return AddedTokens(std::move(plain));
}

}  // namespace

TokenizerTables ParseTokenizerTables(std::string_view json) {
  const std::string file = "tokenizer.json";
  const Json document = ParseJson(json, file);
  const JsonFields root(document, file);
  const JsonFields model = root.Object("model");
  const std::vector<AddedToken> added = ParseAddedTokens(root);
  const bool nfc = ParseNormalizer(root);
  RefuseModelOptions(model);
  CheckDecoder(root);
  std::unordered_set<int32_t> vocabulary_ids;
  SpellingMap vocabulary = ParseVocabulary(model, &vocabulary_ids);
  CheckAddedTokens(added, vocabulary, vocabulary_ids, root);
  BpeTables bpe = ParseBpe(model, vocabulary);
  GuardSpecialTokens(added, root, &bpe);
  std::vector<TokenizerTables::Token> tokens = MakeTokens(vocabulary, added);
  for (const AddedToken& token : added) vocabulary.emplace(token.content, token.id);
  return {.nfc = nfc,
          .pre_tokenizer = ParsePreTokenizer(root),
          .bpe = BpeModel(std::move(bpe)),
          .raw_added = Select(added, false, nfc),
          .normalized_added = Select(added, true, nfc),
          .exact_added = WithoutFlags(added),
          .tokens = std::move(tokens),
          .ids_by_spelling = std::move(vocabulary),
          .bos_id = ParsePostProcessor(root),
          .digest = Sha256Hex(json)};
}

}  // namespace docmem::engine
