#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

// Tells ThreadSanitizer the order that libgomp, which isn't instrumented, keeps between threads.
// Defined in the program, these functions stand in for those of the library.

namespace {

using Body = void (*)(void*);

template <class Function>
Function* Next(Function* /*type*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct Region {
  Body body;
  void* data;
};

// What the starting thread did stands before the team's work, and that before what follows.
__attribute__((no_sanitize("thread"))) void RunRegion(void* erased) {
  const Region region = *static_cast<const Region*>(erased);
  __tsan_acquire(erased);
  region.body(region.data);
  __tsan_release(erased);
}

char barrier;

}  // namespace

extern "C" {

void GOMP_parallel(Body body, void* data, unsigned threads, unsigned flags) {
  static auto* const next = Next(&GOMP_parallel, "GOMP_parallel");
  Region region = {body, data};
  __tsan_release(&region);
  next(RunRegion, &region, threads, flags);
  __tsan_acquire(&region);
}

void GOMP_barrier() {
  static auto* const next = Next(&GOMP_barrier, "GOMP_barrier");
  __tsan_release(&barrier);
  next();
  __tsan_acquire(&barrier);
}

}  // extern "C"
