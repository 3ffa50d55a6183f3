#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "adapter_store/sync.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/interceptors/call.h"

namespace docmem::server {

/// What ends a client stream whose client sends nothing for `ServiceContext::silent_client_limit`:
/// it would hold what it has sent until its deadline.
inline absl::Status SilentClient(absl::Duration limit) {
  return Error(absl::StatusCode::kUnavailable, reason::kSlowClient,
               absl::StrCat("the client sent nothing for ", absl::FormatDuration(limit)));
}

/// Takes the messages of one client stream. All functions run on the executor, one at a time, and
/// may block. A failure ends the RPC with it.
template <class Request, class Response>
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  virtual absl::Status OnMessage(Request* message) = 0;
  /// No more messages: the client closed its side, or is gone, which looks the same. So only an
  /// explicit end message before it may have made anything last.
  virtual absl::Status OnEnd(Response* response) = 0;
};

/// Answers a client-streaming RPC: reads the next message only when the sink is done with the one
/// before. Deletes itself.
template <class Request, class Response>
class ClientStream final : public grpc::ServerReadReactor<Request>,
                           public std::enable_shared_from_this<ClientStream<Request, Response>> {
 public:
  using Sink = MessageSink<Request, Response>;
  using MakeSink = std::function<std::unique_ptr<Sink>(Call&)>;

  static grpc::ServerReadReactor<Request>* Start(const ServiceContext& services,
                                                 const Method& method,
                                                 grpc::CallbackServerContext* context,
                                                 Response* response, MakeSink make_sink) {
    auto stream =
        std::shared_ptr<ClientStream>(new ClientStream(services, method, context, response));
    stream->self_ = stream;
    const bool taken = services.executor->TryRun(
        [stream, make_sink = std::move(make_sink)] { stream->Begin(make_sink); });
    if (!taken) stream->End(ExecutorFull());
    return stream.get();
  }

 private:
  ClientStream(const ServiceContext& services, const Method& method,
               grpc::CallbackServerContext* context, Response* response)
      : services_(services), call_(services, method, context), response_(response) {}

  void Begin(const MakeSink& make_sink) {
    const absl::Status status =
        call_.Admit([weak = this->weak_from_this()](const absl::Status& why) {
          if (const auto stream = weak.lock()) stream->End(why);
        });
    if (!status.ok()) return End(status);
    sink_ = make_sink(call_);
    Read();
  }

  void OnReadDone(bool ok) override {
    services_.executor->Run([self = this->shared_from_this(), ok] {
      self->services_.timer->Cancel(self->silence_);
      self->Take(ok);
    });
  }

  void Take(bool ok) {
    const absl::Status status =
        CatchEngine([&] { return ok ? sink_->OnMessage(&message_) : sink_->OnEnd(&reply_); });
    if (ok && status.ok()) return Read();
    // What it made and didn't publish is gone before the client hears how the call ended.
    sink_.reset();
    End(status);
  }

  void Read() {
    silence_ = services_.timer->At(
        absl::Now() + services_.silent_client_limit, [weak = this->weak_from_this()] {
          const auto stream = weak.lock();
          if (stream) stream->End(SilentClient(stream->services_.silent_client_limit));
        });
    store::MutexLock lock(&mutex_);
    if (!ended_) this->StartRead(&message_);
  }

  void End(const absl::Status& status) {
    {
      store::MutexLock lock(&mutex_);
      if (std::exchange(ended_, true)) return;
    }
    if (status.ok()) *response_ = std::move(reply_);
    this->Finish(call_.Finish(status));
  }

  void OnDone() override { self_.reset(); }

  const ServiceContext services_;
  Call call_;
  Response* const response_;  // gRPC's, until the call has ended
  Response reply_;
  std::shared_ptr<ClientStream> self_;  // until gRPC is done with the reactor
  std::unique_ptr<Sink> sink_;
  Request message_;
  Timer::Id silence_ = 0;
  store::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace docmem::server
