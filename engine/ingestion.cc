#include "engine/ingestion.h"

#include <ATen/ATen.h>

#include <utility>

#include "engine/compression/prefill.h"
#include "engine/model/transformer.h"

namespace docmem::engine {
namespace {

PrefillOptions OptionsOf(const Context& context, const std::vector<Compression>& compressions) {
  return {.context_ids = {context.ids.begin(), context.ids.end()},
          .head_tokens = context.head_tokens,
          .compressions = compressions};
}

class BaseIngestion : public Ingestion {
 public:
  BaseIngestion(std::shared_ptr<const Engine> engine, Context context,
                std::vector<Compression> compressions)
      : engine_(std::move(engine)),
        context_(std::move(context)),
        compressions_(std::move(compressions)),
        prefill_(engine_->transformer(), OptionsOf(context_, compressions_)) {}

  bool Step() override { return prefill_.Step(); }

  double progress() const override {
    const auto total = static_cast<double>(prefill_.units_total());
    return total == 0.0 ? 1.0 : static_cast<double>(prefill_.units_done()) / total;
  }

  double score_seconds() const override { return prefill_.score_seconds(); }

  std::vector<std::shared_ptr<const Cache>> TakeCaches() override {
    std::vector<KeptRows> results = prefill_.TakeResults();
    std::vector<std::shared_ptr<const Cache>> caches;
    for (size_t i = 0; i < results.size(); ++i) {
      caches.push_back(std::make_shared<const Cache>(
          engine_->IdentityOf(context_, compressions_[i]), engine_->config().layers,
          engine_->config().kv_heads, std::move(results[i])));
    }
    return caches;
  }

 private:
  std::shared_ptr<const Engine> engine_;
  Context context_;
  std::vector<Compression> compressions_;
  Prefill prefill_;
};

}  // namespace

std::unique_ptr<Ingestion> MakeIngestion(std::shared_ptr<const Engine> engine, Context context,
                                         std::vector<Compression> compressions) {
  return std::make_unique<BaseIngestion>(std::move(engine), std::move(context),
                                         std::move(compressions));
}

}  // namespace docmem::engine
