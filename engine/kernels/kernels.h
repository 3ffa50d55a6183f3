#pragma once

#include <cstdint>

#include "engine/kernels/cpu_path.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/packed_matrix.h"

namespace docmem::engine {

/// y = x Wᵀ + bias for some panels of W. x [T, inputs] in the compute dtype; y [T, outputs] in fp32
/// or the compute dtype, rounded once.
struct LinearArgs {
  const PackedMatrix* weights = nullptr;
  const float* bias = nullptr;  ///< [outputs]; null: none
  Matrix x;
  Matrix y;
  int64_t first_panel = 0;
  int64_t panel_count = 0;
};

/// One module's low-rank update of some rows, in two halves: down = x Aᵀ, and y += scale · down B.
struct LoraArgs {
  Matrix a;  ///< [r, inputs]
  Matrix b;  ///< [outputs, r], rows one behind the other; finite
  float scale = 0.0F;
  Matrix x;               ///< [T, inputs]
  float* down = nullptr;  ///< [T, r]
  Matrix y;               ///< [T, outputs]
};

/// Keys and values of one KV head, [rows, D] each, one row behind the other. Int8 is symmetric: a
/// key is k ≈ key_scales[d] · q (per channel), a value v ≈ value_scales[row] · q (per row).
struct KvSpan {
  const void* keys = nullptr;
  const void* values = nullptr;
  int64_t rows = 0;
  NumberType type = NumberType::kFloat32;
  const float* key_scales = nullptr;    ///< [D], only with int8
  const float* value_scales = nullptr;  ///< [rows], only with int8
};

/// One sequence's part of an attention: its next `queries` rows of q. Row i of them sees the
/// sequence's own rows 0 … offset + i.
struct OwnRows {
  KvSpan kv;
  int64_t queries = 0;
  int64_t offset = 0;
};

/// Attention of some rows for one KV head: softmax over the cached rows, all of which every query
/// sees, and those of its own sequence, as one set. Keys are read in tiles of 64 and converted in
/// them, once for all queries, so that no copy of a cache ever exists.
struct AttendArgs {
  Matrix q;    ///< [T, repeat · D]: the query heads of this KV head, side by side
  Matrix out;  ///< [T, repeat · D]
  int64_t repeat = 1;
  int64_t dim = 0;
  float scale = 1.0F;  ///< 1/√D
  KvSpan cached;
  const OwnRows* own = nullptr;  ///< [sequences]: in the order of their rows, T in all
  int64_t sequences = 0;
};

/// ln Σ eˣ, and where the largest x is first.
struct LogSumExp {
  float sum = 0.0F;
  int64_t best = 0;
};

/// The compute kernels of one instruction path. Each runs on the calling thread and touches only
/// what its arguments name. **Batch-invariant**: a row's result is the same bits whatever other
/// rows, panels or items a call has, and whichever thread runs it. Sums are fp32; results are
/// rounded to the output's type once. Widths that aren't multiples of 16 are fine everywhere.
struct KernelTable {
  CpuPath path = CpuPath::kPortable;

  void (*linear)(const LinearArgs& args);
  /// down = x Aᵀ for components first … first + count − 1.
  void (*lora_down)(const LoraArgs& args, int64_t first, int64_t count);
  /// y += scale · down B for outputs first … first + count − 1.
  void (*lora_up)(const LoraArgs& args, int64_t first, int64_t count);
  void (*attend)(const AttendArgs& args);
  /// The same for a prefill's many rows: one sequence in bf16 without cached rows, weights rounded
  /// to bf16 before they meet the values. Null where libtorch's fused attention is as fast.
  void (*attend_causal)(const AttendArgs& args) = nullptr;

  /// y = round(x / √(mean(x²) + eps)) · weight, row by row; weight [columns] in fp32.
  void (*rms_norm)(const Matrix& x, const float* weight, float eps, const Matrix& y);
  /// Rotary embedding of `x` [T, heads · dim] into `y`: dimension i turns with i + dim/2. cosine
  /// and sine [T, dim/2].
  void (*rotate)(const Matrix& x, int64_t dim, const float* cosine, const float* sine,
                 const Matrix& y);
  /// y = silu(gate) · up, both rounded as the compute dtype's operators do.
  void (*silu_multiply)(const Matrix& gate, const Matrix& up, const Matrix& y);
  /// y += x.
  void (*add)(const Matrix& x, const Matrix& y);
  /// Of x[0 … count), count > 0; `sum` isn't finite when one of them is NaN
  /// or +∞.
  LogSumExp (*log_sum_exp)(const float* x, int64_t count);
};

/// Of a path in `UsableCpuPaths`.
const KernelTable& KernelsOf(CpuPath path);
/// Of the fastest usable path.
const KernelTable& BestKernels();

}  // namespace docmem::engine
