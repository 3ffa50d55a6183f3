#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/formats/safetensors.h"

namespace docmem::engine {

/// One tensor of a model folder; pointers live as long as the `WeightFiles`.
struct StoredTensor {
  const TensorInfo* info = nullptr;
  std::span<const std::byte> bytes;
  const std::filesystem::path* file = nullptr;
};

/// All safetensors files of a model folder, mapped and checked against each other and the index.
/// Movable, otherwise immutable.
class WeightFiles {
 public:
  /// Errors as `LoadWeights`, as far as they don't concern the model's shapes.
  static WeightFiles Open(const std::filesystem::path& model_dir);

  /// By name, over all files.
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }

 private:
  WeightFiles() = default;

  std::vector<SafetensorsFile> files_;
  std::map<std::string, StoredTensor> tensors_;
};

/// The files `WeightFiles::Open` would read, sorted by name.
std::vector<std::filesystem::path> WeightFilePaths(const std::filesystem::path& model_dir);

}  // namespace docmem::engine
