#pragma once

#include <optional>
#include <string_view>

namespace docmem::engine {

/// The seven linear modules of a block that an adapter may change.
enum class Module { kQ, kK, kV, kO, kGate, kUp, kDown };
inline constexpr int kModuleCount = 7;

/// Name of the module as in Hugging Face and PEFT files, e.g. "q_proj".
constexpr std::string_view ModuleName(Module module) {
  constexpr std::string_view kNames[] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                         "gate_proj", "up_proj", "down_proj"};
  return kNames[static_cast<int>(module)];
}

constexpr std::optional<Module> ModuleFromName(std::string_view name) {
  for (int i = 0; i < kModuleCount; ++i) {
    if (ModuleName(static_cast<Module>(i)) == name) return static_cast<Module>(i);
  }
  return std::nullopt;
}

}  // namespace docmem::engine
