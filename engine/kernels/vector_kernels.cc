// Compiled once per instruction set, each time with DOCMEM_VECTOR_TABLE naming the table to define.
// Nothing here may call a shared inline function that isn't inlined: the linker would keep one
// path's copy for all.
#include "engine/kernels/kernels.h"
#include "engine/kernels/vector_attention.h"
#include "engine/kernels/vector_linear.h"
#include "engine/kernels/vector_lora.h"
#include "engine/kernels/vector_rows.h"
#include "engine/kernels/vector_tables.h"

namespace docmem::engine {

const KernelTable vector_tables::DOCMEM_VECTOR_TABLE = {
    .path = DOCMEM_VECTOR_PATH,
    .linear = LinearKernel,
    .lora_down = LoraDownKernel,
    .lora_up = LoraUpKernel,
    .attend = AttendKernel,
    .rms_norm = RmsNormKernel,
    .rotate = RotateKernel,
    .silu_multiply = SiluMultiplyKernel,
    .add = AddKernel,
    .log_sum_exp = LogSumExpKernel,
};

}  // namespace docmem::engine
