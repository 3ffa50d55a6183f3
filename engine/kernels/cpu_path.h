#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace docmem::engine {

/// Instruction sets that the kernels are compiled for, slowest first. `kPortable` needs nothing
/// beyond what the compiler takes for granted.
enum class CpuPath { kPortable, kAvx2, kAvx512, kAvx512Bf16, kAmx };

/// "portable", "avx2", "avx512", "avx512bf16" or "amx".
std::string_view CpuPathName(CpuPath path);
std::optional<CpuPath> CpuPathFromName(std::string_view name);

/// The paths that this program has and this machine can run, slowest first. The first call asks the
/// operating system for the use of AMX tiles; any thread.
const std::vector<CpuPath>& UsableCpuPaths();

}  // namespace docmem::engine
