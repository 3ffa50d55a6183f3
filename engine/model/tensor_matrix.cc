#include "engine/model/tensor_matrix.h"

#include "engine/formats/error.h"

namespace docmem::engine {

NumberType NumberTypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return NumberType::kFloat32;
    case at::kBFloat16:
      return NumberType::kBfloat16;
    case at::kChar:
      return NumberType::kInt8;
    default:
      ThrowInternal("", std::string("no kernel reads ") + at::toString(tensor.scalar_type()));
  }
}

Matrix MatrixOf(const at::Tensor& tensor) {
  const int64_t rows = tensor.size(0);
  const int64_t columns = rows == 0 ? 0 : tensor.numel() / rows;
  return {tensor.data_ptr(), NumberTypeOf(tensor), rows, columns, tensor.stride(0)};
}

}  // namespace docmem::engine
