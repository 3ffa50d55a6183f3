#include "engine/ingestion.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/compression/prefill.h"
#include "engine/formats/error.h"
#include "engine/model/transformer.h"

namespace docmem::engine {
namespace {

// One pass of the mode's writer, after one of the base model where that one chooses the positions.
class PrefillIngestion : public Ingestion {
 public:
  PrefillIngestion(std::shared_ptr<const Engine> engine, Context context,
                   std::vector<Compression> compressions, IngestionOptions options)
      : engine_(std::move(engine)),
        context_(std::move(context)),
        compressions_(std::move(compressions)),
        options_(std::move(options)),
        passes_(BaseChooses() ? 2 : 1),
        prefill_(MakePass({})) {}

  bool Step() override {
    if (!prefill_->Step()) {
      return false;
    }
    if (pass_ == passes_) {
      return true;
    }
    StartLastPass();
    return false;
  }

  double progress() const override {
    const auto total = static_cast<double>(prefill_->units_total());
    const double share = total == 0.0 ? 1.0 : static_cast<double>(prefill_->units_done()) / total;
    return (pass_ - 1 + share) / passes_;
  }

  double score_seconds() const override { return score_seconds_ + prefill_->score_seconds(); }

  std::vector<std::shared_ptr<const Cache>> TakeCaches() override {
    const std::string hash = options_.adapter == nullptr ? "" : options_.adapter->content_hash();
    std::vector<KeptRows> results = prefill_->TakeResults();
    std::vector<std::shared_ptr<const Cache>> caches;
    for (size_t i = 0; i < results.size(); ++i) {
      caches.push_back(std::make_shared<const Cache>(
          engine_->IdentityOf(context_, compressions_[i], options_.mode, hash),
          engine_->config().layers, engine_->config().kv_heads, std::move(results[i])));
    }
    return caches;
  }

 private:
  // Where nothing is scored, the adapter's pass needs no other before it.
  bool BaseChooses() const {
    return options_.mode == Mode::kBaseScoreAdapterPrefill &&
           std::ranges::any_of(compressions_, IsScored);
  }

  std::unique_ptr<Prefill> MakePass(std::vector<KeptPositions> chosen) const {
    const bool base = UsesBaseCache(options_.mode) || pass_ < passes_;
    return std::make_unique<Prefill>(
        engine_->transformer(),
        PrefillOptions{.context_ids = {context_.ids.begin(), context_.ids.end()},
                       .head_tokens = context_.head_tokens,
                       .compressions = compressions_,
                       .writer = base ? nullptr : &options_.adapter->weights(),
                       .chosen = std::move(chosen),
                       .positions_only = pass_ < passes_});
  }

  void StartLastPass() {
    std::vector<KeptPositions> chosen;
    for (KeptRows& rows : prefill_->TakeResults()) {
      chosen.push_back({.positions = rows.positions, .offsets = rows.offsets});
    }
    score_seconds_ += prefill_->score_seconds();
    prefill_.reset();
    ++pass_;
    prefill_ = MakePass(std::move(chosen));
  }

  std::shared_ptr<const Engine> engine_;
  Context context_;
  std::vector<Compression> compressions_;
  IngestionOptions options_;
  int passes_;
  int pass_ = 1;
  double score_seconds_ = 0.0;
  std::unique_ptr<Prefill> prefill_;
};

}  // namespace

std::unique_ptr<Ingestion> MakeIngestion(std::shared_ptr<const Engine> engine, Context context,
                                         std::vector<Compression> compressions,
                                         IngestionOptions options) {
  if (!UsesBaseCache(options.mode) && options.adapter == nullptr) {
    ThrowInvalidArgument("adapter", "the mode " + std::string(ModeName(options.mode)) +
                                        " makes its caches with an adapter; name one");
  }
  return std::make_unique<PrefillIngestion>(std::move(engine), std::move(context),
                                            std::move(compressions), std::move(options));
}

}  // namespace docmem::engine
