#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "training/trainer.h"

/// What tests of training share; not part of it.
namespace docmem::training::testing {

/// A short text of several sentences, and questions on it.
extern const char* const kDocument;
std::vector<QaPair> SomePairs(size_t count);

/// Examples on `kDocument` in chunks of 32 tokens.
std::vector<Example> SomeExamples(const engine::Engine& engine, Supervision supervision,
                                  size_t pairs = 6);

/// Units until the event comes or the training is finished.
TrainingEvent RunUntil(Trainer* trainer, TrainingEvent event);

/// The exported adapter as the engine loads it.
std::shared_ptr<const engine::Adapter> LoadExport(const engine::Engine& engine,
                                                  const engine::PeftFolder& folder);

/// Mean log-probability loss over the labels of all examples as `Session` scores them in
/// `BASE_KV_ADAPTER_DECODE`: the prefix as the cache, what has no label as the prompt.
double ScoredLoss(const std::shared_ptr<const engine::Engine>& engine,
                  const std::vector<Example>& examples,
                  const std::shared_ptr<const engine::Adapter>& adapter);

}  // namespace docmem::training::testing
