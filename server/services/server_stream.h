#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "adapter_store/sync.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/interceptors/call.h"

namespace docmem::server {

/// A client that reads nothing for so long is cut.
inline constexpr absl::Duration kSlowClientLimit = absl::Seconds(30);

/// Gives the messages of one server stream when asked. Runs on the executor and may block.
template <class Response>
class MessageSource {
 public:
  virtual ~MessageSource() = default;
  /// Fills the next message; false: there is none. A failure ends the RPC with it.
  virtual absl::StatusOr<bool> Next(Response* message) = 0;
};

/// Answers a server-streaming RPC by pulling: the next message is made only when the one before is
/// written. Deletes itself.
template <class Response>
class ServerStream final : public grpc::ServerWriteReactor<Response>,
                           public std::enable_shared_from_this<ServerStream<Response>> {
 public:
  using Source = MessageSource<Response>;
  using MakeSource = std::function<absl::StatusOr<std::unique_ptr<Source>>(Call&)>;

  static grpc::ServerWriteReactor<Response>* Start(const ServiceContext& services,
                                                   const Method& method,
                                                   grpc::CallbackServerContext* context,
                                                   MakeSource make_source) {
    auto stream = std::shared_ptr<ServerStream>(new ServerStream(services, method, context));
    stream->self_ = stream;
    const bool taken = services.executor->TryRun(
        [stream, make_source = std::move(make_source)] { stream->Begin(make_source); });
    if (!taken) stream->End(ExecutorFull());
    return stream.get();
  }

 private:
  ServerStream(const ServiceContext& services, const Method& method,
               grpc::CallbackServerContext* context)
      : services_(services), call_(services, method, context) {}

  void Begin(const MakeSource& make_source) {
    absl::Status status = call_.Admit([weak = this->weak_from_this()](const absl::Status& why) {
      if (const auto stream = weak.lock()) stream->End(why);
    });
    if (!status.ok()) return End(status);
    auto source = CatchEngine([&] { return make_source(call_); });
    if (!source.ok()) return End(source.status());
    source_ = *std::move(source);
    Next();
  }

  void Next() {
    const absl::StatusOr<bool> more = CatchEngine([&] { return source_->Next(&message_); });
    if (!more.ok()) return End(more.status());
    if (!*more) return End(absl::OkStatus());
    slow_ = services_.timer->At(absl::Now() + kSlowClientLimit, [weak = this->weak_from_this()] {
      if (const auto stream = weak.lock()) stream->End(Slow());
    });
    store::MutexLock lock(&mutex_);
    if (!ended_) this->StartWrite(&message_);
  }

  void OnWriteDone(bool ok) override {
    services_.executor->Run([self = this->shared_from_this(), ok] {
      self->services_.timer->Cancel(self->slow_);
      if (ok) return self->Next();
      self->End(Error(absl::StatusCode::kCancelled, reason::kClientGone, "the client left"));
    });
  }

  static absl::Status Slow() {
    return Error(absl::StatusCode::kUnavailable, reason::kSlowClient,
                 "the client read nothing for 30 s");
  }

  void End(const absl::Status& status) {
    {
      store::MutexLock lock(&mutex_);
      if (std::exchange(ended_, true)) return;
    }
    this->Finish(call_.Finish(status));
  }

  void OnDone() override { self_.reset(); }

  const ServiceContext services_;
  Call call_;
  std::shared_ptr<ServerStream> self_;  // until gRPC is done with the reactor
  std::unique_ptr<Source> source_;
  Response message_;
  Timer::Id slow_ = 0;
  store::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::server
