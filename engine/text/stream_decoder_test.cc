#include "engine/text/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

class StreamDecoderTest : public testing::Test {
 protected:
  // One id per byte, as far as the vocabulary has one.
  std::vector<int32_t> ByteIds(std::string_view text) const {
    std::vector<int32_t> ids;
    for (const char c : text) {
      for (int32_t id = 0; id < tokenizer_.vocab_size(); ++id) {
        if (tokenizer_.TokenBytes(id) == std::string_view(&c, 1)) ids.push_back(id);
      }
    }
    EXPECT_EQ(ids.size(), text.size());
    return ids;
  }

  std::string Stream(std::span<const int32_t> ids, StreamDecoder* decoder) const {
    std::string text;
    for (const int32_t id : ids) {
      const std::string piece = decoder->Push(id);
      EXPECT_TRUE(IsValidUtf8(piece));
      text += piece;
    }
    return text;
  }

  const Tokenizer tokenizer_ =
      Tokenizer::Load(DOCMEM_SOURCE_DIR "/tests/reference/tokenizers/qwen-like.json");
  StreamDecoder decoder_{tokenizer_};
};

TEST_F(StreamDecoderTest, HoldsACharacterBackUntilItIsWhole) {
  const std::vector<int32_t> ids = ByteIds("a\u4e2d");
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(decoder_.Push(ids[0]), "a");
  EXPECT_EQ(decoder_.Push(ids[1]), "");
  EXPECT_EQ(decoder_.Push(ids[2]), "");
  EXPECT_EQ(decoder_.Push(ids[3]), "\u4e2d");
  EXPECT_EQ(decoder_.Finish(), "");
  EXPECT_EQ(decoder_.replaced_bytes(), 0);
}

TEST_F(StreamDecoderTest, AnAnswerCutInACharacterEndsInOneReplacementThatIsCounted) {
  const std::vector<int32_t> ids = ByteIds("\U0001f600");
  EXPECT_EQ(Stream(std::span(ids).first(3), &decoder_), "");
  EXPECT_EQ(decoder_.Finish(), "\ufffd");
  EXPECT_EQ(decoder_.replaced_bytes(), 3);
  EXPECT_EQ(decoder_.Finish(), "");
  EXPECT_EQ(Stream(ids, &decoder_), "\U0001f600");
}

TEST_F(StreamDecoderTest, BytesThatCannotBecomeACharacterAreReplacedAtOnce) {
  std::vector<int32_t> ids = ByteIds("\xe4\xb8xy");
  EXPECT_EQ(Stream(ids, &decoder_), "\ufffdxy");
  EXPECT_EQ(decoder_.replaced_bytes(), 2);
}

TEST_F(StreamDecoderTest, SpecialTokensAndUnknownIdsGiveNoText) {
  EXPECT_EQ(decoder_.Push(*tokenizer_.TokenId("<|im_end|>")), "");
  EXPECT_EQ(decoder_.Push(*tokenizer_.TokenId("</think>")), "</think>");
  for (const int32_t id : {-1, tokenizer_.vocab_size(), INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(decoder_.Push(id), "");
  }
}

TEST_F(StreamDecoderTest, ThePiecesTogetherEqualDecodingAtOnce) {
  for (const char* text : {"\u56f3\u66f8\u9928\u306e\u6642\u8a08", "\u0e17\u0e14\u0e2a\u0e2d\u0e1a",
                           "\U0001f469\u200d\U0001f52c \U0001f44b\U0001f3fd"}) {
    const std::vector<int32_t> ids = tokenizer_.EncodeUser(text);
    for (size_t length = 0; length <= ids.size(); ++length) {
      const auto cut = std::span(ids).first(length);
      StreamDecoder decoder(tokenizer_);
      const std::string streamed = Stream(cut, &decoder);
      EXPECT_EQ(streamed + decoder.Finish(), tokenizer_.Decode(cut));
    }
    EXPECT_EQ(tokenizer_.Decode(ids), text);
  }
}

TEST_F(StreamDecoderTest, RandomIdsAlwaysGiveValidText) {
  std::mt19937 random(71);
  for (int round = 0; round < 500; ++round) {
    std::vector<int32_t> ids(20);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 300);
    StreamDecoder decoder(tokenizer_);
    const std::string streamed = Stream(ids, &decoder);
    EXPECT_EQ(streamed + decoder.Finish(), tokenizer_.Decode(ids));
  }
}

}  // namespace
}  // namespace docmem::engine
