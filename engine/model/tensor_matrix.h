#pragma once

#include <ATen/core/Tensor.h>

#include "engine/kernels/matrix.h"

namespace docmem::engine {

/// Of fp32, bf16 and int8 tensors.
NumberType NumberTypeOf(const at::Tensor& tensor);

/// A CPU tensor as the kernels see it: the leading dimension are rows, all others together columns,
/// which are contiguous. Valid as long as the tensor.
Matrix MatrixOf(const at::Tensor& tensor);

}  // namespace docmem::engine
