#include "bench/weight_sweep.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <initializer_list>
#include <memory>

#include "engine/kernels/huge_buffer.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/parallel.h"
#include "engine/model/tensor_matrix.h"
#include "engine/model/transformer.h"
#include "engine/model/weights.h"

namespace docmem::bench {

WeightSweep::WeightSweep(const engine::EngineOptions& options, const engine::Engine& engine) {
  const c10::InferenceMode inference;
  const at::ScalarType dtype = engine.transformer().dtype();
  const engine::Weights weights =
      engine::LoadWeights(options.model_dir, engine.config(), {.dtype = dtype});
  constexpr size_t kPadding = size_t{8} << 20;
  const auto buffer =
      std::make_shared<engine::HugeBuffer>(engine.parameters() * at::elementSize(dtype) + kPadding);
  const auto add = [&](std::initializer_list<at::Tensor> tensors) {
    std::vector<engine::Matrix> matrices;
    for (const at::Tensor& tensor : tensors) matrices.push_back(engine::MatrixOf(tensor));
    matrices_.emplace_back(matrices, matrices.front().type, buffer);
  };
  for (const engine::LayerWeights& layer : weights.layers) {
    const auto& m = layer.matrix;
    add({m[0], m[1], m[2]});
    add({m[3]});
    add({m[4], m[5]});
    add({m[6]});
  }
  add({weights.head});
}

void WeightSweep::Run(int rows) const {
  const engine::KernelTable& kernels = engine::BestKernels();
  const engine::NumberType type = matrices_.front().type();
  std::vector<float> x(16'384), y(200'000);
  for (int row = 0; row < rows; ++row) {
    for (const engine::PackedMatrix& matrix : matrices_) {
      const engine::Matrix in = {x.data(), type, 1, matrix.inputs(), matrix.inputs()};
      const engine::Matrix out = {y.data(), type, 1, matrix.outputs(), matrix.outputs()};
      engine::OnAllWorkers([&](const engine::Worker& worker) {
        const auto [first, count] = worker.Share(matrix.panels(), 2);
        kernels.linear({&matrix, nullptr, in, out, first, count});
      });
    }
  }
}

uint64_t WeightSweep::bytes() const {
  uint64_t bytes = 0;
  for (const engine::PackedMatrix& matrix : matrices_) bytes += matrix.bytes();
  return bytes;
}

}  // namespace docmem::bench
