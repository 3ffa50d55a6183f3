#include "engine/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using docmem::engine::Tokenizer;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const Tokenizer tokenizer = Tokenizer::Parse(input);
    for (const std::string_view text : {std::string_view("don't  stop <|im_end|>\n 12"), input}) {
      for (const int32_t id : tokenizer.EncodeUser(text)) {
        if (id < 0 || id >= tokenizer.vocab_size() || tokenizer.IsSpecial(id)) __builtin_trap();
      }
      tokenizer.Decode(tokenizer.EncodeTemplate(text));
    }
  } catch (const docmem::engine::Error&) {
  }
  return 0;
}
