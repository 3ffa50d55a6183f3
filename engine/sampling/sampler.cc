#include "engine/sampling/sampler.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "engine/formats/error.h"
#include "engine/kernels/kernels.h"

namespace docmem::engine {
namespace {

constexpr double kMaxTemperature = 2.0;

struct Candidate {
  int32_t id;
  float logit;
};

// Higher logits first; of equal logits the lower id.
bool Better(const Candidate& left, const Candidate& right) {
  return left.logit != right.logit ? left.logit > right.logit : left.id < right.id;
}

std::span<const float> Numbers(const at::Tensor& logits) {
  return {logits.const_data_ptr<float>(), static_cast<size_t>(logits.numel())};
}

LogSumExp FiniteLogSumExp(std::span<const float> logits) {
  const LogSumExp lse =
      BestKernels().log_sum_exp(logits.data(), static_cast<int64_t>(logits.size()));
  if (!std::isfinite(lse.sum)) {
    ThrowInternal("logits", "the model's logits hold NaN or infinity");
  }
  return lse;
}

// Keeps the k best and everything that is as good as the k-th, best first.
std::vector<Candidate> TopK(std::span<const float> values, uint32_t top_k) {
  std::vector<Candidate> all(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    all[i] = {static_cast<int32_t>(i), values[i]};
  }
  if (top_k > 0 && top_k < all.size()) {
    const auto kth = all.begin() + static_cast<std::ptrdiff_t>(top_k) - 1;
    std::nth_element(all.begin(), kth, all.end(), Better);
    const float least = kth->logit;
    std::erase_if(all, [least](const Candidate& c) { return c.logit < least; });
  }
  std::sort(all.begin(), all.end(), Better);
  return all;
}

std::vector<double> Softmax(std::span<const Candidate> candidates, double temperature) {
  std::vector<double> weights(candidates.size());
  const double best = candidates.front().logit;
  std::transform(candidates.begin(), candidates.end(), weights.begin(), [&](const Candidate& c) {
    return std::exp((static_cast<double>(c.logit) - best) / temperature);
  });
  return weights;
}

// The length of the shortest run of best candidates whose weight reaches top_p of the whole.
size_t NucleusSize(std::span<const double> weights, double top_p) {
  const double wanted = top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0.0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= wanted) {
      return i + 1;
    }
  }
  return weights.size();
}

size_t Draw(std::span<const double> weights, std::mt19937_64& random) {
  const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
  double left = unit * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i + 1 < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0.0) {
      return i;
    }
  }
  return weights.size() - 1;
}

}  // namespace

void ValidateSampling(const SamplingOptions& options) {
  if (!(options.temperature >= 0.0 && options.temperature <= kMaxTemperature)) {
    ThrowInvalidArgument("temperature",
                         "must be between 0 and 2, not " + std::to_string(options.temperature));
  }
  if (!(options.top_p > 0.0 && options.top_p <= 1.0)) {
    ThrowInvalidArgument("top_p",
                         "must be above 0 and at most 1, not " + std::to_string(options.top_p));
  }
}

Sampler::Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {
  ValidateSampling(options);
}

SampledToken Sampler::Sample(const at::Tensor& logits) {
  const std::span<const float> numbers = Numbers(logits);
  const LogSumExp lse = FiniteLogSumExp(numbers);
  if (options_.temperature == 0.0) {
    const float logit = numbers[static_cast<size_t>(lse.best)];
    return {static_cast<int32_t>(lse.best), logit - lse.sum};
  }
  const std::vector<Candidate> candidates = TopK(numbers, options_.top_k);
  const std::vector<double> weights = Softmax(candidates, options_.temperature);
  const size_t nucleus =
      options_.top_p < 1.0 ? NucleusSize(weights, options_.top_p) : weights.size();
  const Candidate& drawn = candidates[Draw(std::span(weights).first(nucleus), random_)];
  return {drawn.id, drawn.logit - lse.sum};
}

float LogProbability(const at::Tensor& logits, int32_t id) {
  const std::span<const float> numbers = Numbers(logits);
  return numbers[static_cast<size_t>(id)] - FiniteLogSumExp(numbers).sum;
}

}  // namespace docmem::engine
