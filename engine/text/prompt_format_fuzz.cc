#include "engine/text/prompt_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using docmem::engine::PromptFormat;
  static const auto tokenizer =
      docmem::engine::Tokenizer::Load(DOCMEM_SOURCE_DIR "/tests/reference/tokenizers/flags.json");
  try {
    const PromptFormat format =
        PromptFormat::FromJson({reinterpret_cast<const char*>(data), size}, tokenizer);
    format.HeadIds("system");
    format.QuestionIds({{{.question = "one", .answer = "two"}}}, "instruction", "three");
    if (format.AnswerIds("four").back() != format.end_of_turn_id()) __builtin_trap();
  } catch (const docmem::engine::Error&) {
  }
  return 0;
}
