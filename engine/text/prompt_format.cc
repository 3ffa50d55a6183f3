#include "engine/text/prompt_format.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/formats/digest.h"
#include "engine/formats/json_fields.h"

namespace docmem::engine {
namespace {

constexpr std::string_view kSystemSlot = "{system}";
constexpr std::string_view kInstructionSlot = "{instruction}";
constexpr const char* kSystemText =
    "Answer the question about the document briefly, using only the document.";
constexpr const char* kBridge = "\n\n{instruction}Question: ";

PromptFormat::Strings ChatMl(bool empty_think) {
  const std::string tail = "<|im_end|>\n<|im_start|>assistant\n";
  return {.name = empty_think ? "chatml-empty-think" : "chatml",
          .system_text = kSystemText,
          .head = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\nDocument:\n",
          .bridge = kBridge,
          .tail = empty_think ? tail + "<think>\n\n</think>\n\n" : tail,
          .history_bridge = "<|im_end|>\n<|im_start|>user\n{instruction}Question: ",
          .history_tail = tail,
          .end_of_turn = "<|im_end|>",
          .stop = {}};
}

PromptFormat::Strings Llama3() {
  const std::string tail = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n";
  return {.name = "llama3",
          .system_text = kSystemText,
          .head =
              "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n{system}<|eot_id|>"
              "<|start_header_id|>user<|end_header_id|>\n\nDocument:\n",
          .bridge = kBridge,
          .tail = tail,
          .history_bridge =
              "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
              "{instruction}Question: ",
          .history_tail = tail,
          .end_of_turn = "<|eot_id|>",
          .stop = {}};
}

// The first of the tokens that models end a text with; the head and tail need no control token.
std::string EndOfText(const Tokenizer& tokenizer) {
  for (const char* token :
       {"<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "</s>"}) {
    const auto id = tokenizer.TokenId(token);
    if (id && tokenizer.IsAdded(*id)) return token;
  }
  ThrowFailedPrecondition("end_of_turn",
                          "the tokenizer has no end-of-text token that the format \"plain\" knows; "
                          "give a prompt format file that names one");
}

PromptFormat::Strings Plain(const Tokenizer& tokenizer) {
  return {.name = "plain",
          .system_text = kSystemText,
          .head = "{system}\n\nDocument:\n",
          .bridge = kBridge,
          .tail = "\nAnswer:\n",
          .history_bridge = kBridge,
          .history_tail = "\nAnswer:\n",
          .end_of_turn = EndOfText(tokenizer),
          .stop = {}};
}

// Cuts `text` at `slot`, which may come at most once; false if it doesn't come.
bool CutAt(std::string_view text, std::string_view slot, std::string_view* before,
           std::string_view* behind) {
  const size_t at = text.find(slot);
  *before = text.substr(0, at);
  *behind = at == std::string_view::npos ? "" : text.substr(at + slot.size());
  return at != std::string_view::npos;
}

void CheckSlots(const std::string& field, std::string_view text, std::string_view slot) {
  std::string_view before;
  std::string_view behind;
  if (!CutAt(text, slot, &before, &behind) || behind.find(slot) != std::string_view::npos) {
    ThrowInvalidArgument(field, "must contain " + std::string(slot) + " once");
  }
}

std::string Digest(const PromptFormat::Strings& strings) {
  const Json json = {{"name", strings.name},
                     {"system_text", strings.system_text},
                     {"head", strings.head},
                     {"bridge", strings.bridge},
                     {"tail", strings.tail},
                     {"history_bridge", strings.history_bridge},
                     {"history_tail", strings.history_tail},
                     {"end_of_turn", strings.end_of_turn},
                     {"stop", strings.stop}};
  return Sha256Hex(json.dump());
}

// Collects text up to the next control token and encodes it in one go.
class PromptWriter {
 public:
  explicit PromptWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void Template(std::string_view text) {
    for (const Tokenizer::Segment& segment : tokenizer_.SplitTemplate(text)) {
      if (segment.id) {
        Flush();
        ids_.push_back(*segment.id);
      } else {
        text_ += segment.text;
      }
    }
  }

  void User(std::string_view text) { text_ += text; }

  void Bridge(std::string_view bridge, std::string_view instruction) {
    std::string_view before;
    std::string_view behind;
    CutAt(bridge, kInstructionSlot, &before, &behind);
    Template(before);
    if (!instruction.empty()) User(std::string(instruction) + "\n");
    Template(behind);
  }

  std::vector<int32_t> TakeIds() {
    Flush();
    return std::move(ids_);
  }

 private:
  void Flush() {
    const std::vector<int32_t> ids = tokenizer_.EncodeUser(text_);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    text_.clear();
  }

  const Tokenizer& tokenizer_;
  std::string text_;
  std::vector<int32_t> ids_;
};

}  // namespace

PromptFormat::PromptFormat(Strings strings, Tokenizer tokenizer)
    : strings_(std::move(strings)), tokenizer_(std::move(tokenizer)) {
  CheckSlots("head", strings_.head, kSystemSlot);
  CheckSlots("bridge", strings_.bridge, kInstructionSlot);
  CheckSlots("history_bridge", strings_.history_bridge, kInstructionSlot);
  end_of_turn_id_ = ControlToken(strings_.end_of_turn);
  stop_ids_.push_back(end_of_turn_id_);
  for (const std::string& stop : strings_.stop) stop_ids_.push_back(ControlToken(stop));
  digest_ = Digest(strings_);
}

int32_t PromptFormat::ControlToken(const std::string& spelling) const {
  const auto id = tokenizer_.TokenId(spelling);
  if (!id || !tokenizer_.IsAdded(*id)) {
    ThrowFailedPrecondition(spelling, "the prompt format \"" + strings_.name +
                                          "\" needs this added token, which the tokenizer lacks");
  }
  return *id;
}

PromptFormat PromptFormat::BuiltIn(std::string_view name, Tokenizer tokenizer) {
  std::vector<std::string> needed;
  Strings strings;
  if (name == "chatml" || name == "chatml-empty-think") {
    needed = {"<|im_start|>"};
    if (name != "chatml") needed.insert(needed.end(), {"<think>", "</think>"});
    strings = ChatMl(name != "chatml");
  } else if (name == "llama3") {
    needed = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>"};
    strings = Llama3();
  } else if (name == "plain") {
    strings = Plain(tokenizer);
  } else {
    ThrowInvalidArgument("prompt_format", "\"" + std::string(name) +
                                              "\" isn't built in; there are chatml, "
                                              "chatml-empty-think, llama3 and plain");
  }
  PromptFormat format(std::move(strings), std::move(tokenizer));
  for (const std::string& token : needed) format.ControlToken(token);
  return format;
}

PromptFormat PromptFormat::Choose(Tokenizer tokenizer, std::string_view chat_template) {
  const auto mentions = [&](std::string_view word) {
    return chat_template.find(word) != std::string_view::npos;
  };
  if (chat_template.empty()) return BuiltIn("plain", std::move(tokenizer));
  if (mentions("<|start_header_id|>")) return BuiltIn("llama3", std::move(tokenizer));
  if (mentions("<|im_start|>")) {
    return BuiltIn(mentions("enable_thinking") ? "chatml-empty-think" : "chatml",
                   std::move(tokenizer));
  }
  ThrowUnimplemented("chat_template",
                     "no built-in prompt format fits it; give a prompt format file");
}

PromptFormat PromptFormat::FromJson(std::string_view json, Tokenizer tokenizer) {
  constexpr std::array<std::string_view, 9> kKeys = {
      "name",           "system_text",  "head",        "bridge", "tail",
      "history_bridge", "history_tail", "end_of_turn", "stop"};
  const Json document = ParseJson(json, "prompt format", {.max_bytes = 1 << 20});
  const JsonFields fields(document, "prompt format");
  for (const auto& [key, value] : document.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      ThrowInvalidArgument(fields.Path(key), "isn't a key of a prompt format");
    }
  }
  Strings strings{.name = fields.String("name"),
                  .system_text = fields.String("system_text"),
                  .head = fields.String("head"),
                  .bridge = fields.String("bridge"),
                  .tail = fields.String("tail"),
                  .history_bridge = fields.String("history_bridge"),
                  .history_tail = fields.String("history_tail"),
                  .end_of_turn = fields.String("end_of_turn"),
                  .stop = fields.OptionalStrings("stop").value_or(std::vector<std::string>())};
  return PromptFormat(std::move(strings), std::move(tokenizer));
}

std::vector<int32_t> PromptFormat::HeadIds(std::string_view system_text) const {
  std::string_view before;
  std::string_view behind;
  CutAt(strings_.head, kSystemSlot, &before, &behind);
  PromptWriter writer(tokenizer_);
  writer.Template(before);
  writer.User(system_text);
  writer.Template(behind);
  std::vector<int32_t> ids = writer.TakeIds();
  const std::optional<int32_t> bos = tokenizer_.bos_id();
  if (bos && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

std::vector<int32_t> PromptFormat::QuestionIds(std::span<const Turn> history,
                                               std::string_view instruction,
                                               std::string_view question) const {
  PromptWriter writer(tokenizer_);
  writer.Bridge(strings_.bridge, history.empty() ? instruction : "");
  for (const Turn& turn : history) {
    const bool last = &turn == &history.back();
    writer.User(turn.question);
    writer.Template(strings_.history_tail);
    writer.User(turn.answer);
    writer.Bridge(strings_.history_bridge, last ? instruction : "");
  }
  writer.User(question);
  writer.Template(strings_.tail);
  return writer.TakeIds();
}

std::vector<int32_t> PromptFormat::AnswerIds(std::string_view answer) const {
  std::vector<int32_t> ids = tokenizer_.EncodeUser(answer);
  ids.push_back(end_of_turn_id_);
  return ids;
}

}  // namespace docmem::engine
