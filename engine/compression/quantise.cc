#include "engine/compression/quantise.h"

#include <ATen/ATen.h>

namespace docmem::engine {
namespace {

constexpr double kLargest = 127.0;

// Rows [n, D] fp32 by scales that broadcast to them.
at::Tensor Divided(const at::Tensor& rows, const at::Tensor& scales) {
  const at::Tensor safe = at::where(scales > 0.0, scales, at::ones_like(scales));
  return (rows / safe).round().clamp(-kLargest, kLargest).to(at::kChar);
}

}  // namespace

KeptRows QuantiseKv(const KeptRows& rows) {
  const int64_t heads = rows.offsets.numel() - 1, dim = rows.keys.size(1);
  const at::Tensor offsets = rows.offsets.cpu();
  const auto* offset = static_cast<const int64_t*>(offsets.const_data_ptr());
  KeptRows result = {.keys = at::empty(rows.keys.sizes(), rows.keys.options().dtype(at::kChar)),
                     .positions = rows.positions,
                     .offsets = rows.offsets,
                     .key_scales = at::zeros({heads, dim}, rows.keys.options().dtype(at::kFloat))};
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t count = offset[head + 1] - offset[head];
    if (count == 0) continue;
    const at::Tensor keys = rows.keys.narrow(0, offset[head], count).to(at::kFloat);
    const at::Tensor scales = keys.abs().amax(0) / kLargest;
    result.key_scales.select(0, head).copy_(scales);
    result.keys.narrow(0, offset[head], count).copy_(Divided(keys, scales));
  }
  const at::Tensor values = rows.values.to(at::kFloat);
  const at::Tensor scales = values.abs().amax(1, /*keepdim=*/true) / kLargest;
  result.values = Divided(values, scales);
  result.value_scales = scales.squeeze(1);
  return result;
}

}  // namespace docmem::engine
