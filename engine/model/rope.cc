#include "engine/model/rope.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace docmem::engine {
namespace {

// base^(2i/D), [D/2] fp32.
at::Tensor Wavelengths(double theta, int64_t head_dim) {
  const at::Tensor even = at::arange(0, head_dim, 2, at::kLong).to(at::kFloat);
  return at::pow(at::Scalar(theta), even / static_cast<double>(head_dim));
}

// Frequencies of long waves are divided by `factor`, of short ones kept, between them blended.
at::Tensor Llama3Frequencies(const RopeConfig& rope, const at::Tensor& plain) {
  const double context = static_cast<double>(rope.original_max_positions);
  const at::Tensor wavelength = 2.0 * std::numbers::pi / plain;
  const at::Tensor is_long = wavelength > context / rope.low_freq_factor;
  const at::Tensor is_short = wavelength < context / rope.high_freq_factor;
  const at::Tensor scaled = at::where(is_long, plain / rope.factor, plain);
  const at::Tensor smooth = (context / wavelength - rope.low_freq_factor) /
                            (rope.high_freq_factor - rope.low_freq_factor);
  const at::Tensor blended = (1.0 - smooth) * scaled / rope.factor + smooth * scaled;
  return at::where(is_short.logical_or(is_long), scaled, blended);
}

// Dimension that makes `rotations` turns over the original context, arXiv 2309.00071.
double YarnDimension(const RopeConfig& rope, double rotations, double head_dim) {
  const double context = static_cast<double>(rope.original_max_positions);
  return head_dim * std::log(context / (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.theta));
}

at::Tensor YarnFrequencies(const RopeConfig& rope, int64_t head_dim) {
  const double dim = static_cast<double>(head_dim);
  double low = YarnDimension(rope, rope.beta_fast, dim);
  double high = YarnDimension(rope, rope.beta_slow, dim);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1.0);
  if (low == high) high += 0.001;

  const at::Tensor wavelengths = Wavelengths(rope.theta, head_dim);
  const at::Tensor extrapolated = 1.0 / wavelengths;
  const at::Tensor interpolated = 1.0 / (rope.factor * wavelengths);
  const at::Tensor ramp = ((at::arange(head_dim / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
  const at::Tensor keep = 1.0 - ramp;
  return interpolated * (1.0 - keep) + extrapolated * keep;
}

at::Tensor InverseFrequencies(const RopeConfig& rope, int64_t head_dim) {
  if (rope.type == RopeType::kYarn) return YarnFrequencies(rope, head_dim);
  const at::Tensor plain = 1.0 / Wavelengths(rope.theta, head_dim);
  if (rope.type == RopeType::kLinear) return plain / rope.factor;
  if (rope.type == RopeType::kLlama3) return Llama3Frequencies(rope, plain);
  return plain;
}

}  // namespace

RopeTable::RopeTable(const RopeConfig& config, int64_t head_dim, at::Device device)
    : inverse_frequencies_(InverseFrequencies(config, head_dim).to(device)),
      attention_factor_(config.attention_factor) {}

RopeTable::Rotation RopeTable::At(const at::Tensor& positions) const {
  const at::Tensor angles =
      positions.to(at::kFloat).unsqueeze(-1) * inverse_frequencies_.unsqueeze(0);
  return {angles.cos() * attention_factor_, angles.sin() * attention_factor_};
}

at::Tensor RopeTable::Rotate(const at::Tensor& x, const Rotation& rotation) {
  const auto repeat = [&](const at::Tensor& half) {  // [T, D/2] → [T, 1, D]
    return at::cat({half, half}, -1).unsqueeze(1).to(x.scalar_type());
  };
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  return x * repeat(rotation.cosine) + at::cat({-halves[1], halves[0]}, -1) * repeat(rotation.sine);
}

}  // namespace docmem::engine
