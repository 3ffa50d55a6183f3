#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "eval/data_set.h"
#include "eval/settings.h"
#include "eval/unit_hook.h"
#include "training/qa_pair.h"
#include "training/trainer.h"

namespace docmem::eval {

/// A document as the adapters are made from it. Refers to what must outlive it.
struct Subject {
  const Document& document;
  const engine::Context& context;
  const Split& split;
  std::filesystem::path folder;  ///< where its pairs and adapters are kept; exists
};

/// Makes a document's adapters, one per supervision, and keeps them in the document's folder:
///
///     pairs.json                    what the base model has written for the QA supervisions
///     SUPERVISION/checkpoint        of a training that isn't finished
///     SUPERVISION/adapter_*         the adapter as a PEFT folder
///     SUPERVISION/training.json     written last: with it the adapter is complete
///
/// Each file but the adapter's own tells the digest of everything it was made from; files made
/// from something else are refused (`kFailedPrecondition`), so an adapter is never taken for
/// another. Runs tensor work on the calling thread.
class AdapterMaker {
 public:
  /// `inputs`: digest of what all adapters depend on beside document and supervision.
  AdapterMaker(std::shared_ptr<const engine::Engine> engine, const Settings& settings,
               std::string inputs);

  /// The stored adapter, or a newly trained one; continues a training from its checkpoint. Null
  /// when there is nothing to train on: the base model has written no acceptable pair. Throws what
  /// training throws.
  std::shared_ptr<const engine::Adapter> Make(const Subject& subject,
                                              training::Supervision supervision,
                                              const UnitHook& on_unit) const;

 private:
  std::vector<training::QaPair> Pairs(const Subject& subject, const UnitHook& on_unit) const;
  std::vector<training::QaPair> SyntheticPairs(const Subject& subject,
                                               const UnitHook& on_unit) const;
  std::shared_ptr<const engine::Adapter> Train(const Subject& subject,
                                               training::Supervision supervision,
                                               const std::filesystem::path& folder,
                                               const UnitHook& on_unit) const;
  void RunTraining(training::Trainer* trainer, const std::filesystem::path& checkpoint,
                   const UnitHook& on_unit) const;
  std::shared_ptr<const engine::Adapter> Load(const engine::PeftFolder& folder) const;
  std::string InputsOf(const Subject& subject) const;

  std::shared_ptr<const engine::Engine> engine_;
  const Settings& settings_;
  const std::string inputs_;
};

}  // namespace docmem::eval
