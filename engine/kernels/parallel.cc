#include "engine/kernels/parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace docmem::engine {

void Worker::Barrier() {
#ifdef _OPENMP
#pragma omp barrier
#endif
}

namespace internal {

void RunOnAllWorkers(void (*call)(const void*, const Worker&), const void* work) {
#ifdef _OPENMP
#pragma omp parallel
  call(work, {omp_get_thread_num(), omp_get_num_threads()});
#else
  call(work, {});
#endif
}

}  // namespace internal
}  // namespace docmem::engine
