#pragma once

#include <string>

#include "engine/artifacts/adapter.h"
#include "training/options.h"

namespace docmem::training {

/// The adapter as a PEFT folder of two files, which `Engine::Pack` accepts and peft loads:
/// `adapter_config.json` with the options that a loader needs and the base model's name, and
/// `adapter_model.safetensors` with the weights in their dtype. Equal arguments give equal bytes.
/// `weights` are CPU tensors of the modules that `options` names, in every layer.
engine::PeftFolder MakePeftFolder(const engine::LoraWeights& weights,
                                  const TrainingOptions& options, const std::string& base_model);

}  // namespace docmem::training
