#include "engine/artifacts/peft_tensors.h"

#include <algorithm>

#include "engine/artifacts/number_text.h"

namespace docmem::engine {
namespace {

constexpr const char* kFile = "adapter_model.safetensors";
constexpr size_t kListedNames = 3;
constexpr size_t kListedBytes = 120;

constexpr std::array<std::string_view, 3> kPrefixes = {"base_model.model.", "language_model.",
                                                       "model."};
constexpr std::array<std::string_view, 4> kModelParts = {"layers.", "norm.", "embed_tokens.",
                                                         "lm_head."};

bool Consume(std::string_view& text, std::string_view prefix) {
  const bool found = text.starts_with(prefix);
  if (found) {
    text.remove_prefix(prefix.size());
  }
  return found;
}

std::string_view WithoutPrefixes(std::string_view name) {
  while (std::ranges::any_of(kPrefixes, [&](std::string_view p) { return Consume(name, p); })) {
  }
  return name;
}

std::string_view Block(Module module) { return module < Module::kGate ? "self_attn." : "mlp."; }

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Why PEFT writes a tensor of this name, where we don't support it; null for a name it wouldn't
// write for a model of ours.
const char* UnsupportedFeature(std::string_view name) {
  if (Contains(name, "lora_magnitude_vector")) {
    return "DoRA isn't supported";
  }
  if (Contains(name, "lora_embedding_")) {
    return "adapters on embeddings aren't supported";
  }
  if (Contains(name, "trainable_tokens")) {
    return "trained token embeddings aren't supported";
  }
  if (name.ends_with(".bias")) {
    return "trained biases aren't supported";
  }
  if (Contains(name, "lm_head.") || Contains(name, "embed_tokens.")) {
    return "changes of the output head or of embeddings aren't supported";
  }
  const std::string_view inner = WithoutPrefixes(name);
  const bool model_part = std::ranges::any_of(
      kModelParts, [&](std::string_view part) { return inner.starts_with(part); });
  if (Contains(name, "modules_to_save") || (model_part && !Contains(name, "lora_"))) {
    return "fully trained modules beside the LoRA matrices aren't supported";
  }
  return nullptr;
}

// Lists the first names of many, cut to a readable length.
class NameList {
 public:
  void Add(const std::string& name) {
    if (count_++ < kListedNames) {
      text_ += (text_.empty() ? "" : ", ") + name.substr(0, kListedBytes);
    }
  }

  bool empty() const { return count_ == 0; }

  std::string Text() const {
    return count_ <= kListedNames
               ? text_
               : text_ + " and " + std::to_string(count_ - kListedNames) + " more";
  }

 private:
  size_t count_ = 0;
  std::string text_;
};

void RequireSupported(const SafetensorsView& file) {
  const char* reason = nullptr;
  NameList names;
  for (const auto& [name, info] : file.tensors()) {
    const char* feature = UnsupportedFeature(name);
    if (feature != nullptr && (reason == nullptr || reason == feature)) {
      reason = feature;
      names.Add(name);
    }
  }
  if (reason != nullptr) {
    ThrowUnimplemented(kFile, std::string(reason) + ": " + names.Text());
  }
}

void Place(const std::string& name, const LoraTensorName& parsed, LoraTensorTable& table) {
  if (parsed.layer >= static_cast<int64_t>(table.size())) {
    ThrowInvalidArgument(name.substr(0, kListedBytes),
                         "the model has only " + std::to_string(table.size()) +
                             " layers; the adapter belongs to another base model");
  }
  LoraTensors& tensors =
      table[static_cast<size_t>(parsed.layer)][static_cast<size_t>(parsed.module)];
  std::string& slot = parsed.is_b ? tensors.b_name : tensors.a_name;
  if (!slot.empty()) {
    ThrowInvalidArgument(name.substr(0, kListedBytes), "means the same as " + slot);
  }
  slot = name;
}

void RequirePairs(const LoraTensorTable& table) {
  for (const auto& layer : table) {
    for (const LoraTensors& tensors : layer) {
      if (tensors.a_name.empty() != tensors.b_name.empty()) {
        ThrowInvalidArgument(tensors.a_name + tensors.b_name,
                             "comes without its other half (lora_A and lora_B belong together)");
      }
    }
  }
}

}  // namespace

std::optional<LoraTensorName> ParseLoraTensorName(std::string_view name) {
  name = WithoutPrefixes(name);
  if (!Consume(name, "layers.")) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(0, name.find('.'));
  const auto layer = ParseInteger(digits);
  if (!layer || *layer < 0 || digits.size() == name.size() || digits != std::to_string(*layer)) {
    return std::nullopt;
  }
  name.remove_prefix(digits.size() + 1);
  for (int i = 0; i < kModuleCount; ++i) {
    const auto module = static_cast<Module>(i);
    std::string_view rest = name;
    if (Consume(rest, Block(module)) && Consume(rest, ModuleName(module))) {
      for (const bool is_b : {false, true}) {
        const std::string matrix = is_b ? ".lora_B" : ".lora_A";
        if (rest == matrix + ".weight" || rest == matrix + ".default.weight") {
          return LoraTensorName{.layer = *layer, .module = module, .is_b = is_b};
        }
      }
    }
  }
  return std::nullopt;
}

std::string FullModuleName(int64_t layer, Module module) {
  return "model.layers." + std::to_string(layer) + "." + std::string(Block(module)) +
         std::string(ModuleName(module));
}

LoraTensorTable SortLoraTensors(const SafetensorsView& file, const ModelConfig& model) {
  RequireSupported(file);
  LoraTensorTable table(static_cast<size_t>(model.layers));
  NameList unmatched;
  for (const auto& [name, info] : file.tensors()) {
    if (const auto parsed = ParseLoraTensorName(name)) {
      Place(name, *parsed, table);
    } else {
      unmatched.Add(name);
    }
  }
  if (!unmatched.empty()) {
    ThrowInvalidArgument(kFile, "tensors that match no module of the model: " + unmatched.Text());
  }
  if (file.tensors().empty()) {
    ThrowInvalidArgument(kFile, "holds no tensors");
  }
  RequirePairs(table);
  return table;
}

}  // namespace docmem::engine
