#include "engine/kernels/cpu_path.h"

#include <array>
#include <utility>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace docmem::engine {
namespace {

constexpr std::array<std::pair<CpuPath, std::string_view>, 5> kNames = {{
    {CpuPath::kPortable, "portable"},
    {CpuPath::kAvx2, "avx2"},
    {CpuPath::kAvx512, "avx512"},
    {CpuPath::kAvx512Bf16, "avx512bf16"},
    {CpuPath::kAmx, "amx"},
}};

#ifdef __x86_64__
// Leaf 7 of CPUID, subleaf 0, EDX: bit 22 is AMX-BF16, bit 24 AMX-TILE. GCC 12 has no name for
// them.
bool HasTiles() {
  unsigned eax = 7, ebx = 0, ecx = 0, edx = 0;
  __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  constexpr unsigned kBits = (1U << 22) | (1U << 24);
  return (edx & kBits) == kBits;
}

// Linux lets a process use the tiles only after it has asked (arch_prctl, ARCH_REQ_XCOMP_PERM).
bool MayUseTiles() {
#ifdef __linux__
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

std::vector<CpuPath> FindUsable() {
  std::vector<CpuPath> paths = {CpuPath::kPortable};
#ifdef __x86_64__
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return paths;
  paths.push_back(CpuPath::kAvx2);
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) {
    return paths;
  }
  paths.push_back(CpuPath::kAvx512);
  if (!__builtin_cpu_supports("avx512bf16")) return paths;
  paths.push_back(CpuPath::kAvx512Bf16);
  if (HasTiles() && MayUseTiles()) paths.push_back(CpuPath::kAmx);
#endif
  return paths;
}

}  // namespace

std::string_view CpuPathName(CpuPath path) { return kNames[static_cast<size_t>(path)].second; }

std::optional<CpuPath> CpuPathFromName(std::string_view name) {
  for (const auto& [path, known] : kNames) {
    if (known == name) return path;
  }
  return std::nullopt;
}

const std::vector<CpuPath>& UsableCpuPaths() {
  static const std::vector<CpuPath> paths = FindUsable();
  return paths;
}

}  // namespace docmem::engine
