#include "engine/model/lora_updates.h"

#include <ATen/ATen.h>

#include "engine/model/tensor_matrix.h"

namespace docmem::engine {

LoraUpdates::LoraUpdates(const ModelConfig& config, int64_t layer, std::span<const Module> modules,
                         std::span<const AdapterSpan> spans, const Matrix& x, const Matrix& y) {
  for (const AdapterSpan& span : spans) {
    int64_t column = 0;
    for (const Module module : modules) {
      const int64_t outputs = ShapeOf(module, config).out;
      if (span.adapter != nullptr && span.rows > 0) {
        Add(span.adapter->At(layer, module), span, x, y.Columns(column, outputs));
      }
      column += outputs;
    }
  }
  int64_t numbers = 0;
  for (const LoraArgs& update : updates_) numbers += update.x.rows * update.a.rows;
  down_.resize(static_cast<size_t>(numbers));
  float* down = down_.data();
  for (LoraArgs& update : updates_) {
    update.down = down;
    down += update.x.rows * update.a.rows;
  }
}

void LoraUpdates::Add(const LoraPair& pair, const AdapterSpan& span, const Matrix& x,
                      const Matrix& y) {
  if (!pair.defined()) return;
  updates_.push_back({.a = MatrixOf(pair.a),
                      .b = MatrixOf(pair.b),
                      .scale = static_cast<float>(pair.scale),
                      .x = x.Rows(span.first_row, span.rows),
                      .y = y.Rows(span.first_row, span.rows)});
}

void LoraUpdates::Down(const KernelTable& kernels, const Worker& worker) const {
  for (const LoraArgs& update : updates_) {
    const auto [first, count] = worker.Share(update.a.rows);
    kernels.lora_down(update, first, count);
  }
}

void LoraUpdates::Up(const KernelTable& kernels, const Worker& worker) const {
  for (const LoraArgs& update : updates_) {
    const auto [first, count] = worker.Share(update.y.columns, 16);
    kernels.lora_up(update, first, count);
  }
}

}  // namespace docmem::engine
