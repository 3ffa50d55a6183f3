#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "engine/formats/safetensors.h"

namespace docmem::engine {

/// Throws `kInternal` for element types that our files don't hold.
DType FileDType(at::ScalarType type);

/// Throws `kInvalidArgument` with `name` as the field for element types that we never read.
at::ScalarType TensorDType(DType dtype, const std::string& name);

/// The bytes of a contiguous CPU tensor; valid while it lives.
std::span<const std::byte> TensorBytes(const at::Tensor& tensor);

/// The tensor as one section of a file. `tensor` must be contiguous, on the CPU, and outlive the
/// result.
TensorSource SectionOf(std::string name, const at::Tensor& tensor);

/// A CPU tensor over bytes of a file, which `owner` keeps alive. No copy unless the bytes aren't
/// aligned to the dtype.
at::Tensor AliasBytes(std::span<const std::byte> bytes, const TensorInfo& info,
                      std::shared_ptr<const void> owner, const std::string& name);

}  // namespace docmem::engine
