#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>

#include "engine/formats/digest.h"
#include "engine/formats/json_fields.h"
#include "engine/model/weight_files.h"
#include "engine/model/weights.h"

namespace docmem::engine {
namespace {

// What the memo is valid for: [path, size, mtime, ctime] of every file; the latter can't be set
// back. Paths are canonical, so a link that is moved to another file counts as another file.
Json Fingerprint(const std::filesystem::path& model_dir) {
  Json files = Json::array();
  for (const std::filesystem::path& path : WeightFilePaths(model_dir)) {
    struct stat status = {};
    const std::filesystem::path real = std::filesystem::weakly_canonical(path);
    if (stat(real.c_str(), &status) != 0) ThrowNotFound(path.string(), "can't be read");
    files.push_back({real.string(), static_cast<int64_t>(status.st_size),
                     static_cast<int64_t>(status.st_mtim.tv_sec),
                     static_cast<int64_t>(status.st_mtim.tv_nsec),
                     static_cast<int64_t>(status.st_ctim.tv_sec),
                     static_cast<int64_t>(status.st_ctim.tv_nsec)});
  }
  return files;
}

std::string Remembered(const std::filesystem::path& memo_file, const Json& files) {
  std::ifstream stream(memo_file, std::ios::binary);
  if (!stream) return "";
  std::stringstream text;
  text << stream.rdbuf();
  const Json memo = Json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  if (!memo.is_object() || !memo.contains("files") || memo["files"] != files) return "";
  const std::string digest = memo.value("digest", Json()).is_string() ? memo["digest"] : "";
  return digest.size() == 64 ? digest : "";
}

// Losing the memo costs one reading of the weights at the next start, so errors are ignored.
void Remember(const std::filesystem::path& memo_file, const Json& files,
              const std::string& digest) {
  const std::filesystem::path temporary = memo_file.string() + ".tmp";
  {
    std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
    stream << Json{{"digest", digest}, {"files", files}}.dump(1) << "\n";
    if (!stream.flush()) return;
  }
  std::error_code ignored;
  std::filesystem::rename(temporary, memo_file, ignored);
}

std::string ComputeDigest(const std::filesystem::path& model_dir) {
  const WeightFiles files = WeightFiles::Open(model_dir);
  Sha256 digest;
  for (const auto& [name, stored] : files.tensors()) {
    const Json entry = {name, DTypeName(stored.info->dtype), stored.info->shape,
                        Xxh3Hex(stored.bytes)};
    digest.Update(entry.dump() + "\n");
  }
  return digest.Hex();
}

}  // namespace

std::string WeightsDigest(const std::filesystem::path& model_dir,
                          const std::filesystem::path& memo_file) {
  if (memo_file.empty()) return ComputeDigest(model_dir);
  const Json files = Fingerprint(model_dir);
  if (const std::string known = Remembered(memo_file, files); !known.empty()) return known;
  const std::string digest = ComputeDigest(model_dir);
  Remember(memo_file, files, digest);
  return digest;
}

}  // namespace docmem::engine
