#include "engine/model/weight_files.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"

namespace docmem::engine {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// Tensor name → file name, as the index says.
using WeightMap = std::map<std::string, std::string>;

void RequirePlainName(const JsonFields& map, const std::string& tensor, const std::string& file) {
  const std::filesystem::path path(file);
  if (path.filename() != path || path.extension() != ".safetensors") {
    ThrowInvalidArgument(map.Path(tensor), "\"" + file + "\" isn't the name of a shard");
  }
}

std::optional<WeightMap> ReadIndex(const std::filesystem::path& model_dir) {
  const std::filesystem::path path = model_dir / kIndexFile;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const MappedFile file = MappedFile::Open(path);
  const Json json = ParseJson(file.text(), kIndexFile);
  const JsonFields map = JsonFields(json, kIndexFile).Object("weight_map");
  WeightMap result;
  for (const auto& [tensor, value] : map.json().items()) {
    result[tensor] = map.String(tensor);
    RequirePlainName(map, tensor, result[tensor]);
  }
  if (result.empty()) ThrowInvalidArgument(map.Path(""), "names no tensor");
  return result;
}

std::vector<std::filesystem::path> ShardPaths(const std::filesystem::path& model_dir,
                                              const WeightMap& index) {
  std::set<std::filesystem::path> paths;
  for (const auto& [tensor, file] : index) paths.insert(model_dir / file);
  return {paths.begin(), paths.end()};
}

void RequireIndexed(const WeightMap& index, const std::map<std::string, StoredTensor>& tensors) {
  for (const auto& [name, file] : index) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.file->filename() != file) {
      ThrowInvalidArgument(name, "isn't in " + file + ", where " + kIndexFile + " says it is");
    }
  }
  for (const auto& [name, stored] : tensors) {
    if (!index.contains(name)) {
      ThrowInvalidArgument(
          name, "is in " + stored.file->filename().string() + ", but not in " + kIndexFile);
    }
  }
}

std::vector<std::filesystem::path> PathsOf(const std::filesystem::path& model_dir,
                                           const std::optional<WeightMap>& index) {
  if (index) return ShardPaths(model_dir, *index);
  const std::filesystem::path single = model_dir / kSingleFile;
  if (!std::filesystem::exists(single)) {
    ThrowNotFound(model_dir.string(),
                  std::string("holds neither ") + kSingleFile + " nor " + kIndexFile);
  }
  return {single};
}

}  // namespace

std::vector<std::filesystem::path> WeightFilePaths(const std::filesystem::path& model_dir) {
  return PathsOf(model_dir, ReadIndex(model_dir));
}

WeightFiles WeightFiles::Open(const std::filesystem::path& model_dir) {
  const std::optional<WeightMap> index = ReadIndex(model_dir);
  WeightFiles result;
  for (const std::filesystem::path& path : PathsOf(model_dir, index)) {
    result.files_.push_back(SafetensorsFile::Open(path));
  }
  for (const SafetensorsFile& file : result.files_) {
    for (const auto& [name, info] : file.view().tensors()) {
      const StoredTensor stored{&info, file.view().Data(info), &file.file().path()};
      if (!result.tensors_.emplace(name, stored).second) {
        ThrowInvalidArgument(
            name, "is in more than one shard, also in " + file.file().path().filename().string());
      }
    }
  }
  if (index) RequireIndexed(*index, result.tensors_);
  return result;
}

}  // namespace docmem::engine
