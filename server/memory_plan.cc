#include "server/memory_plan.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace docmem::server {
namespace {

namespace fs = std::filesystem;

// Nothing where the file is missing or says "max".
std::optional<uint64_t> ReadNumber(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  uint64_t number = 0;
  if (!(file >> text) || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

uint64_t MachineBytes(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  std::string key;
  uint64_t kibibytes = 0;
  while (file >> key >> kibibytes) {
    if (key == "MemTotal:") return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::numeric_limits<uint64_t>::max();
}

// The limit of a control group and of all groups that hold it.
uint64_t GroupBytes(const fs::path& mount, const std::string& group, const char* file) {
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  fs::path folder = mount / fs::path(group).relative_path();
  for (;;) {
    if (const auto bytes = ReadNumber(folder / file)) limit = std::min(limit, *bytes);
    if (folder == mount || !folder.has_relative_path()) return limit;
    folder = folder.parent_path();
  }
}

std::string Mebibytes(uint64_t bytes) {
  return absl::StrFormat("%.0f MiB", static_cast<double>(bytes) / (1 << 20));
}

struct Part {
  const char* name;
  uint64_t bytes;
};

std::array<Part, 7> PartsOf(const MemoryPlan& plan) {
  return {{{"weights", plan.weights},
           {"--device-budget", plan.device_budget},
           {"--host-budget", plan.host_budget},
           {"--kv-budget", plan.kv_budget},
           {"one prefill at the longest context", plan.prefill_peak},
           {"the longest context's cache at ratio 0", plan.ingested_result},
           {"reserve", kMemoryReserveBytes}}};
}

// Budgets may be as large as numbers go.
uint64_t SumOf(const MemoryPlan& plan) {
  uint64_t sum = 0;
  for (const Part& part : PartsOf(plan)) {
    sum += std::min(part.bytes, std::numeric_limits<uint64_t>::max() - sum);
  }
  return sum;
}

}  // namespace

std::string Arithmetic(const MemoryPlan& plan) {
  std::string text;
  for (const Part& part : PartsOf(plan)) {
    if (part.bytes == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : " + ", part.name, " ", Mebibytes(part.bytes));
  }
  return absl::StrCat(text, " = ", Mebibytes(SumOf(plan)));
}

absl::Status CheckMemory(const MemoryPlan& plan, uint64_t limit_bytes) {
  if (SumOf(plan) <= limit_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(Arithmetic(plan), " exceed the memory limit of ",
                                                   Mebibytes(limit_bytes),
                                                   "; lower a budget or raise the limit"));
}

uint64_t ReadMemoryLimit(const std::string& root) {
  const fs::path base(root);
  uint64_t limit = MachineBytes(base);
  std::ifstream groups(base / "proc/self/cgroup");
  // Lines are hierarchy:controllers:path; version 2 has no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty()) {
      limit = std::min(limit, GroupBytes(base / "sys/fs/cgroup", parts[2], "memory.max"));
    } else if (parts[1] == "memory") {
      limit = std::min(
          limit, GroupBytes(base / "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"));
    }
  }
  return limit;
}

uint64_t WeightFileBytes(const std::string& model_folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(model_folder, error)) {
    if (entry.path().extension() != ".safetensors") continue;
    const uintmax_t size = fs::file_size(entry.path(), error);
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace docmem::server
