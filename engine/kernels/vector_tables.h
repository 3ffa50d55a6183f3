#pragma once

#include <cstddef>

#include "engine/kernels/kernels.h"

namespace docmem::engine {

/// The calling thread's working memory, kept between calls so that a decode step allocates nothing.
/// Scopes nest: an inner one gets memory of its own.
class Scratch {
 public:
  explicit Scratch(size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Aligned to 64, uninitialised.
  float* floats() const { return static_cast<float*>(memory_); }

 private:
  void* memory_;
};

/// vector_kernels.cc, once per instruction set.
namespace vector_tables {
extern const KernelTable kPortable;
extern const KernelTable kAvx2;
extern const KernelTable kAvx512;
}  // namespace vector_tables

/// bf16_linear.cc, which takes the place of the AVX-512 table's kernel, and bf16_attention.cc.
void Bf16Linear(const LinearArgs& args);
void Bf16AttendCausal(const AttendArgs& args);

/// amx_linear.cc and amx_lora.cc, which take the place of three kernels of the AVX-512 table. The
/// calling process may use AMX tiles.
void AmxLinear(const LinearArgs& args);
void AmxLoraDown(const LoraArgs& args, int64_t first, int64_t count);
void AmxLoraUp(const LoraArgs& args, int64_t first, int64_t count);

}  // namespace docmem::engine
