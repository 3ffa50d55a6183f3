#include "engine/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/formats/digest.h"
#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"
#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using Ids = std::vector<int32_t>;

std::string ReadFile(const std::string& name) {
  return std::string(
      MappedFile::Open(DOCMEM_SOURCE_DIR "/tests/reference/tokenizers/" + name + ".json").text());
}

// A tokenizer.json that parses, to be changed in one place.
Json Intact() { return ParseJson(ReadFile("qwen-like"), "tokenizer.json"); }

Error ErrorOf(const std::string& json) {
  try {
    Tokenizer::Parse(json);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "was accepted";
  return Error(ErrorKind::kInternal, "", "");
}

void ExpectRefused(const Json& json, ErrorKind kind, const char* field) {
  const Error error = ErrorOf(json.dump());
  EXPECT_EQ(error.kind(), kind) << error.what();
  EXPECT_EQ(error.field(), field) << error.what();
}

class TokenizerTest : public testing::TestWithParam<const char*> {
 protected:
  const Tokenizer tokenizer_ = Tokenizer::Parse(ReadFile(GetParam()));
};

TEST_P(TokenizerTest, NoAddedTokenCanBeSpelledByUsers) {
  const Json json = ParseJson(ReadFile(GetParam()), "tokenizer.json");
  int added = 0;
  for (int32_t id = 0; id < tokenizer_.vocab_size(); ++id) {
    if (!tokenizer_.IsAdded(id)) continue;
    ++added;
    for (const Json& token : json["added_tokens"]) {
      const std::string content = token["content"];
      for (const std::string& text : {content, "a " + content + content + " b", content + "\n"}) {
        EXPECT_THAT(tokenizer_.EncodeUser(text), Each(testing::Ne(id))) << text;
      }
    }
  }
  EXPECT_GE(added, 5);
}

TEST_P(TokenizerTest, TextComesBack) {
  for (const char* text : {"Plain words, 123.", "\u4e2d\u6587 \u0e44\u0e17\u0e22", "  \n\t x",
                           "<|im_end|></think>", "\U0001f469\u200d\U0001f52c"}) {
    EXPECT_EQ(tokenizer_.Decode(tokenizer_.EncodeUser(text)), text);
  }
}

TEST_P(TokenizerTest, InvalidUtf8IsRefusedByBothEntryPoints) {
  for (const char* text : {"\xff", "a\xc3", "\xed\xa0\x80"}) {
    EXPECT_THROW(tokenizer_.EncodeUser(text), Error);
    EXPECT_THROW(tokenizer_.EncodeTemplate(text), Error);
    EXPECT_THROW(tokenizer_.SplitTemplate(text), Error);
  }
  EXPECT_THAT(tokenizer_.EncodeUser(""), IsEmpty());
}

// Sanitizers slow linear time down by less than this, and quadratic time takes far longer still.
double SecondsForAMegabyte() {
  const char* sanitizers = std::getenv("DOCMEM_SANITIZE");
  return sanitizers == nullptr || *sanitizers == '\0' ? 2 : 40;
}

// Linear time takes a fraction of a second of the processor's, quadratic time minutes.
TEST_P(TokenizerTest, AMegabyteOfOneThingIsEncodedWhole) {
  for (const char* unit : {"a", "_", "\u4e2d", " ", "\n", "\r\n", " \n", "7", "aGVsbG8gd29ybGQ",
                           "\u0301\u0323", "'", "<|", "</think>"}) {
    std::string text;
    while (text.size() < 1u << 20) text += unit;
    const std::clock_t start = std::clock();
    const Ids ids = tokenizer_.EncodeUser(text);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, SecondsForAMegabyte()) << unit;
    const std::string decoded = tokenizer_.Decode(ids);
    EXPECT_TRUE(decoded == text || decoded == NormalizeNfc(text)) << unit;
  }
}

TEST_P(TokenizerTest, LongTextsCanBeCancelled) {
  std::string words;
  while (words.size() < 1u << 20) words += "many words ";
  const std::pair<std::string, int> cases[] = {{words, 5}, {std::string(1u << 20, 'a'), 1}};
  for (const auto& [text, question] : cases) {
    int asked = 0;
    try {
      tokenizer_.EncodeUser(text, [&, last = question] { return ++asked == last; });
      ADD_FAILURE() << "wasn't cancelled";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
    }
    EXPECT_EQ(asked, question);
  }
}

TEST_P(TokenizerTest, CanBeUsedByManyThreadsAtOnce) {
  const std::string text(10'000, 'b');
  const Ids expected = tokenizer_.EncodeUser(text);
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results) {
    threads.emplace_back([&, copy = tokenizer_] { result = copy.EncodeUser(text); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results, Each(expected));
}

INSTANTIATE_TEST_SUITE_P(Files, TokenizerTest,
                         testing::Values("smollm2-like", "llama3-like", "qwen-like", "flags"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(TokenizerFileTest, TellsWhatItHolds) {
  const std::string json = ReadFile("llama3-like");
  const Tokenizer tokenizer = Tokenizer::Parse(json);
  EXPECT_EQ(tokenizer.digest(), Sha256Hex(json));
  EXPECT_EQ(tokenizer.bos_id(), tokenizer.TokenId("<|begin_of_text|>"));
  EXPECT_EQ(tokenizer.vocab_size(), *tokenizer.TokenId("<|eot_id|>") + 1);
  EXPECT_TRUE(tokenizer.IsSpecial(*tokenizer.TokenId("<|eot_id|>")));
  EXPECT_FALSE(tokenizer.IsAdded(*tokenizer.TokenId("\u0120the")));
  EXPECT_EQ(tokenizer.TokenBytes(*tokenizer.TokenId("\u0120the")), " the");
  EXPECT_EQ(tokenizer.TokenId("no such token"), std::nullopt);
  EXPECT_FALSE(tokenizer.IsAdded(-1));
  EXPECT_FALSE(tokenizer.IsSpecial(INT32_MAX));
  EXPECT_EQ(Tokenizer::Parse(ReadFile("qwen-like")).bos_id(), std::nullopt);
}

TEST(TokenizerFileTest, AddedTokensThatAreNotSpecialAreShownAndStillNotForUsers) {
  const Tokenizer tokenizer = Tokenizer::Parse(ReadFile("qwen-like"));
  const int32_t id = *tokenizer.TokenId("</think>");
  EXPECT_TRUE(tokenizer.IsAdded(id));
  EXPECT_FALSE(tokenizer.IsSpecial(id));
  EXPECT_EQ(tokenizer.EncodeTemplate("</think>"), Ids{id});
  EXPECT_EQ(tokenizer.Decode(Ids{id}), "</think>");
}

TEST(TokenizerFileTest, TemplatesAreCutAtControlTokensWhateverTheirFlags) {
  const Tokenizer tokenizer = Tokenizer::Parse(ReadFile("flags"));
  const auto segments = tokenizer.SplitTemplate("a <left>b<word>c");
  ASSERT_EQ(segments.size(), 5u);
  EXPECT_EQ(segments[0].text, "a ");
  EXPECT_EQ(segments[1].id, tokenizer.TokenId("<left>"));
  EXPECT_EQ(segments[3].id, tokenizer.TokenId("<word>"));
}

TEST(TokenizerFileTest, BothSpellingsOfMergesMeanTheSame) {
  Json json = Intact();
  for (Json& merge : json["model"]["merges"]) {
    ASSERT_TRUE(merge.is_array());
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const char* text = "The harbour's clock doesn't stop.";
  EXPECT_EQ(Tokenizer::Parse(json.dump()).EncodeUser(text),
            Tokenizer::Parse(Intact().dump()).EncodeUser(text));
}

TEST(TokenizerFileTest, WhatIsNotUnderstoodIsRefusedByName) {
  const ErrorKind kind = ErrorKind::kUnimplemented;
  const auto with = [](const char* pointer, Json value) {
    Json json = Intact();
    json[Json::json_pointer(pointer)] = std::move(value);
    return json;
  };
  ExpectRefused(with("/model/type", "Unigram"), kind, "tokenizer.json.model.type");
  ExpectRefused(with("/model/type", "WordPiece"), kind, "tokenizer.json.model.type");
  ExpectRefused(with("/model/byte_fallback", true), kind, "tokenizer.json.model.byte_fallback");
  ExpectRefused(with("/model/dropout", 0.1), kind, "tokenizer.json.model.dropout");
  ExpectRefused(with("/model/end_of_word_suffix", "</w>"), kind,
                "tokenizer.json.model.end_of_word_suffix");
  ExpectRefused(with("/normalizer", {{"type", "NFKC"}}), kind, "tokenizer.json.normalizer.type");
  ExpectRefused(with("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Strip"}}}}}),
                kind, "tokenizer.json.normalizer.normalizers[0].type");
  ExpectRefused(with("/pre_tokenizer", {{"type", "Metaspace"}}), kind,
                "tokenizer.json.pre_tokenizer.type");
  ExpectRefused(with("/pre_tokenizer", {{"type", "Digits"}, {"individual_digits", true}}), kind,
                "tokenizer.json.pre_tokenizer");
  ExpectRefused(with("/pre_tokenizer/pretokenizers/0/behavior", "Removed"), kind,
                "tokenizer.json.pre_tokenizer.pretokenizers[0].behavior");
  ExpectRefused(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+"), kind,
                "tokenizer.json.pre_tokenizer.pretokenizers[0].pattern.Regex");
  ExpectRefused(with("/pre_tokenizer/pretokenizers/1/add_prefix_space", true), kind,
                "tokenizer.json.pre_tokenizer.pretokenizers[1].add_prefix_space");
  ExpectRefused(with("/pre_tokenizer/pretokenizers/2", {{"type", "Digits"}}), kind,
                "tokenizer.json.pre_tokenizer.pretokenizers[2].type");
  ExpectRefused(with("/post_processor", {{"type", "BertProcessing"}}), kind,
                "tokenizer.json.post_processor.type");
  ExpectRefused(with("/decoder", {{"type", "WordPiece"}}), kind, "tokenizer.json.decoder.type");
}

TEST(TokenizerFileTest, PostProcessorsThatAddTokensBehindTheTextAreRefused) {
  Json json = ParseJson(ReadFile("llama3-like"), "");
  Json& single = json["post_processor"]["processors"][1]["single"];
  std::swap(single[0], single[1]);
  ExpectRefused(json, ErrorKind::kUnimplemented,
                "tokenizer.json.post_processor.processors[1].single");
}

TEST(TokenizerFileTest, MalformedFilesAreRefusedByName) {
  const ErrorKind kind = ErrorKind::kInvalidArgument;
  for (const char* key : {"model", "pre_tokenizer", "decoder"}) {
    Json json = Intact();
    json.erase(key);
    ExpectRefused(json, kind, (std::string("tokenizer.json.") + key).c_str());
  }
  Json json = Intact();
  json["model"]["merges"][2] = Json::array({"no such", "tokens"});
  ExpectRefused(json, kind, "tokenizer.json.model.merges[2]");
  json["model"]["merges"][2] = "a b c";
  ExpectRefused(json, kind, "tokenizer.json.model.merges[2]");
  json = Intact();
  json["model"]["vocab"]["z"] = json["model"]["vocab"]["a"];
  ExpectRefused(json, kind, "tokenizer.json.model.vocab.z");
  json["model"]["vocab"]["z"] = -1;
  ExpectRefused(json, kind, "tokenizer.json.model.vocab.z");
  json = Intact();
  json["added_tokens"][1]["id"] = json["added_tokens"][0]["id"];
  ExpectRefused(json, kind, "tokenizer.json.added_tokens[1]");
  json = Intact();
  json["added_tokens"][0]["content"] = "";
  ExpectRefused(json, kind, "tokenizer.json.added_tokens[0].content");
  ExpectRefused(Json::array(), kind, "tokenizer.json");
}

TEST(TokenizerFileTest, ASpecialTokenThatMergesCanMakeIsRefused) {
  Json json = Intact();
  const Json& merge = json["model"]["merges"][0];
  const std::string merged = merge[0].get<std::string>() + merge[1].get<std::string>();
  json["added_tokens"].push_back(
      {{"id", json["model"]["vocab"][merged]}, {"content", merged}, {"special", true}});
  const Error error = ErrorOf(json.dump());
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("plain text can become this token"));
}

TEST(TokenizerFileTest, ASpecialTokenIsNoWholePieceEither) {
  Json json = ParseJson(ReadFile("llama3-like"), "");
  json["added_tokens"].push_back(
      {{"id", json["model"]["vocab"]["docmemory"]}, {"content", "docmemory"}, {"special", true}});
  const Tokenizer tokenizer = Tokenizer::Parse(json.dump());
  const int32_t id = *tokenizer.TokenId("docmemory");
  EXPECT_THAT(tokenizer.EncodeUser("docmemory"), Each(testing::Ne(id)));
  EXPECT_EQ(tokenizer.EncodeTemplate("docmemory"), Ids{id});
}

TEST(TokenizerFileTest, LoadsFromDiskAndRefusesCutFiles) {
  const std::string path = testing::TempDir() + "tokenizer_test.json";
  const std::string json = ReadFile("qwen-like");
  std::ofstream(path, std::ios::binary) << json;
  EXPECT_EQ(Tokenizer::Load(path).digest(), Sha256Hex(json));
  std::filesystem::resize_file(path, json.size() / 2);
  EXPECT_THROW(Tokenizer::Load(path), Error);
  std::filesystem::remove(path);
  EXPECT_THROW(Tokenizer::Load(path), Error);
}

}  // namespace
}  // namespace docmem::engine
