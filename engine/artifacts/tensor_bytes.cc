#include "engine/artifacts/tensor_bytes.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>

namespace docmem::engine {

DType FileDType(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DType::kF32;
    case at::kBFloat16:
      return DType::kBF16;
    case at::kLong:
      return DType::kI64;
    case at::kInt:
      return DType::kI32;
    case at::kChar:
      return DType::kI8;
    default:
      ThrowInternal("", std::string("no file of ours holds ") + at::toString(type));
  }
}

at::ScalarType TensorDType(DType dtype, const std::string& name) {
  switch (dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kI64:
      return at::kLong;
    case DType::kI32:
      return at::kInt;
    case DType::kI8:
      return at::kChar;
    default:
      ThrowInvalidArgument(
          name, "has dtype " + std::string(DTypeName(dtype)) + ", expected F32, F16 or BF16");
  }
}

std::span<const std::byte> TensorBytes(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

TensorSource SectionOf(std::string name, const at::Tensor& tensor) {
  return {.spec = {.name = std::move(name),
                   .dtype = FileDType(tensor.scalar_type()),
                   .shape = tensor.sizes().vec()},
          .data = TensorBytes(tensor)};
}

at::Tensor AliasBytes(std::span<const std::byte> bytes, const TensorInfo& info,
                      std::shared_ptr<const void> owner, const std::string& name) {
  const at::ScalarType type = TensorDType(info.dtype, name);
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % at::elementSize(type) == 0;
  if (bytes.empty() || !aligned) {
    at::Tensor copy = at::empty(info.shape, type);
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(copy.mutable_data_ptr()));
    return copy;
  }
  // libtorch has no read-only tensors; nobody writes to a loaded artifact.
  void* data = const_cast<std::byte*>(bytes.data());
  return at::from_blob(
      data, info.shape, [owner = std::move(owner)](void*) mutable { owner.reset(); },
      at::TensorOptions(type));
}

}  // namespace docmem::engine
