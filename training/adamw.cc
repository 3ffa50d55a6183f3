#include "training/adamw.h"

#include <ATen/ATen.h>

#include <cmath>

#include "engine/formats/error.h"

namespace docmem::training {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
constexpr double kNormEpsilon = 1e-6;  // of torch's clip_grad_norm_

}  // namespace

AdamW::AdamW(const LoraParameters& parameters)
    : first_moment_(at::zeros_like(parameters.values())),
      second_moment_(at::zeros_like(parameters.values())) {}

double AdamW::Step(const LoraParameters& parameters, const AdamWStep& step) {
  const at::NoGradGuard no_gradients;
  const at::Tensor& gradient = parameters.gradient();
  const double norm = at::linalg_vector_norm(gradient).item<double>();
  if (!std::isfinite(norm)) engine::ThrowInternal("gradient", "isn't finite");
  if (step.max_gradient_norm > 0.0 && norm > step.max_gradient_norm) {
    gradient.mul_(step.max_gradient_norm / (norm + kNormEpsilon));
  }
  ++steps_;
  // torch counts steps in a tensor.
  const at::Tensor steps = at::scalar_tensor(static_cast<double>(steps_), gradient.options());
  at::_fused_adamw_({parameters.values()}, {gradient}, {first_moment_}, {second_moment_},
                    /*max_exp_avg_sqs=*/{}, {steps}, step.learning_rate, kBeta1, kBeta2,
                    step.weight_decay, kEpsilon, /*amsgrad=*/false, /*maximize=*/false);
  gradient.zero_();
  return norm;
}

}  // namespace docmem::training
