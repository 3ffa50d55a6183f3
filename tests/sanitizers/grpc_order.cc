#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpcpp/support/server_callback.h>
#include <sanitizer/tsan_interface.h>

#include <thread>

// Tells ThreadSanitizer the order that gRPC, which isn't instrumented, keeps between threads.
// Defined in the program, these functions stand in for those of the library.

namespace {

template <class Function>
Function* Next(Function* /*type*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

grpc_event Completed(grpc_event event) {
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // namespace

// What was done before a batch of operations started stands before what follows its completion.
extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count, void* tag,
                                      void* reserved) {
  static auto* const next = Next(&grpc_call_start_batch, "grpc_call_start_batch");
  __tsan_release(tag);
  return next(call, ops, count, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const next = Next(&grpc_completion_queue_next, "grpc_completion_queue_next");
  return Completed(next(queue, deadline, reserved));
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* const next = Next(&grpc_completion_queue_pluck, "grpc_completion_queue_pluck");
  return Completed(next(queue, tag, deadline, reserved));
}

}  // extern "C"

// A call's last callbacks come after all others, on another thread: here a new one, whose start
// ThreadSanitizer sees, instead of one of gRPC's own.
namespace grpc::internal {

void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  __tsan_acquire(&callbacks_outstanding_);
  if (inline_ondone) return CallOnDone();
  std::thread([this] { CallOnDone(); }).detach();
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  __tsan_acquire(&on_cancel_conditions_remaining_);
  if (reactor->InternalInlineable()) return reactor->OnCancel();
  Ref();
  std::thread([this, reactor] {
    reactor->OnCancel();
    MaybeDone();
  }).detach();
}

}  // namespace grpc::internal
