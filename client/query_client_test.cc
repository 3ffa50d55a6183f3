#include "client/query_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "client/error.h"
#include "client/testing/fake_clock.h"
#include "client/testing/fake_daemon.h"

namespace docmem::client {
namespace {

using grpc::StatusCode;
using testing::FakeClock;
using testing::FakeDaemon;
using testing::HeaderOf;
using testing::Refusal;

using Writer = grpc::ServerWriter<v1::AskResponse>;

void SendStarted(Writer* writer, const std::string& request_id = "r1") {
  v1::AskResponse response;
  response.mutable_started()->set_request_id(request_id);
  writer->Write(response);
}

void SendText(Writer* writer, const std::string& text) {
  v1::AskResponse response;
  response.mutable_delta()->set_text(text);
  response.mutable_delta()->set_tokens(1);
  writer->Write(response);
}

void SendFinished(Writer* writer) {
  v1::AskResponse response;
  response.mutable_finished()->set_reason(v1::Finished::REASON_END_OF_TURN);
  response.mutable_finished()->set_answer_tokens(2);
  writer->Write(response);
}

class QueryClientTest : public ::testing::Test {
 protected:
  // What each try does; the last one also for all later tries.
  void Script(const std::vector<std::function<grpc::Status(Writer*)>>& tries) {
    daemon_.handlers.ask = [this, tries](grpc::ServerContext* context, const v1::AskRequest&,
                                         Writer* writer) {
      header_ = HeaderOf(*context, "docmem-document").value_or("");
      const size_t number = tries_++;
      return tries[std::min(number, tries.size() - 1)](writer);
    };
  }

  absl::StatusOr<Answer> Ask(const CallOptions& options = {}) {
    v1::AskRequest request;
    request.mutable_memory()->set_document("d1");
    QueryClient client(*Connection::Open({.address = daemon_.address(), .clock = clock_}));
    auto answer = client.Ask(request, options);
    daemon_.Settle();
    return answer;
  }

  FakeDaemon daemon_;
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::atomic<size_t> tries_ = 0;
  std::string header_;
};

grpc::Status AnswerWell(Writer* writer) {
  SendStarted(writer);
  SendText(writer, "Wasser");
  SendText(writer, " fließt");
  SendFinished(writer);
  return grpc::Status::OK;
}

TEST_F(QueryClientTest, DeltasTogetherAreTheAnswer) {
  Script({AnswerWell});
  const absl::StatusOr<Answer> answer = Ask();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->text, "Wasser fließt");
  EXPECT_EQ(answer->started.request_id(), "r1");
  EXPECT_EQ(answer->finished.answer_tokens(), 2U);
}

TEST_F(QueryClientTest, NamesTheDocumentToRouters) {
  Script({AnswerWell});
  ASSERT_TRUE(Ask().ok());
  EXPECT_EQ(header_, "default/d1");
}

TEST_F(QueryClientTest, AStreamWithoutFinishedIsALostConnection) {
  const std::vector<grpc::Status> ends = {grpc::Status::OK,
                                          {StatusCode::UNKNOWN, "stream removed"},
                                          {StatusCode::INTERNAL, "RST_STREAM"},
                                          {StatusCode::CANCELLED, "by a proxy"},
                                          {StatusCode::UNAVAILABLE, "connection reset"}};
  for (const grpc::Status& end : ends) {
    tries_ = 0;
    Script({[end](Writer* writer) {
      SendStarted(writer);
      SendText(writer, "half");
      return end;
    }});
    const absl::Status status = Ask().status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(tries_, 1U) << "text was delivered";
  }
}

TEST_F(QueryClientTest, ALostConnectionIsTriedAgainBeforeTheFirstText) {
  Script({[](Writer* writer) {
            SendStarted(writer);
            return grpc::Status(StatusCode::UNKNOWN, "stream removed");
          },
          AnswerWell});
  const absl::StatusOr<Answer> answer = Ask();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->text, "Wasser fließt");
  EXPECT_EQ(tries_, 2U);
}

TEST_F(QueryClientTest, OurOwnErrorsAreNoLostConnection) {
  Script({[](Writer*) {
    return ToStatus(Refusal{.code = StatusCode::INTERNAL, .reason = "NUMERIC_FAULT"});
  }});
  const absl::Status status = Ask().status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_EQ(DetailOf(status).reason, "NUMERIC_FAULT");
  EXPECT_EQ(tries_, 1U);
}

TEST_F(QueryClientTest, AFullQueueIsWaitedFor) {
  Script({[](Writer*) {
            return ToStatus(Refusal{.code = StatusCode::RESOURCE_EXHAUSTED,
                                    .reason = "QUEUE_FULL",
                                    .retry_delay = absl::Seconds(3)});
          },
          AnswerWell});
  EXPECT_TRUE(Ask().ok());
  ASSERT_EQ(clock_->sleeps().size(), 1U);
  EXPECT_GE(clock_->sleeps()[0], absl::Seconds(3));
}

TEST_F(QueryClientTest, AShutdownAfterTextIsTheCallersToHandle) {
  Script({[](Writer* writer) {
    SendText(writer, "half");
    return ToStatus(Refusal{.code = StatusCode::UNAVAILABLE,
                            .reason = "SHUTTING_DOWN",
                            .retry_delay = absl::Seconds(5)});
  }});
  EXPECT_EQ(DetailOf(Ask().status()).reason, "SHUTTING_DOWN");
  EXPECT_EQ(tries_, 1U);
}

TEST_F(QueryClientTest, AStopCancelsTheStream) {
  std::atomic<bool> cancelled = false;
  daemon_.handlers.ask = [&](grpc::ServerContext* context, const v1::AskRequest&, Writer* writer) {
    SendStarted(writer);
    SendText(writer, "half");
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    cancelled = true;
    return grpc::Status::OK;
  };
  std::stop_source source;
  QueryClient client(*Connection::Open({.address = daemon_.address()}));
  const AskEvents events{.delta = [&](const v1::Delta&) { source.request_stop(); }};
  const auto finished = client.Ask(v1::AskRequest(), events, {.stop = source.get_token()});
  EXPECT_TRUE(absl::IsCancelled(finished.status()));
  daemon_.Stop();
  EXPECT_TRUE(cancelled);
}

TEST_F(QueryClientTest, ADaemonThatDiesInAnAnswerIsUnavailable) {
  daemon_.handlers.ask = [](grpc::ServerContext* context, const v1::AskRequest&, Writer* writer) {
    SendText(writer, "half");
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::OK;
  };
  QueryClient client(*Connection::Open({.address = daemon_.address()}));
  std::thread killer;
  const AskEvents events{
      .delta = [&](const v1::Delta&) { killer = std::thread([this] { daemon_.Stop(); }); }};
  const auto finished = client.Ask(v1::AskRequest(), events);
  killer.join();
  EXPECT_TRUE(absl::IsUnavailable(finished.status())) << finished.status();
}

TEST_F(QueryClientTest, LogProbabilitiesAreCollected) {
  Script({[](Writer* writer) {
    v1::AskResponse response;
    response.mutable_delta()->set_text("a");
    response.mutable_delta()->add_log_probabilities()->set_token_id(7);
    writer->Write(response);
    SendFinished(writer);
    return grpc::Status::OK;
  }});
  const absl::StatusOr<Answer> answer = Ask();
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->log_probabilities.size(), 1U);
  EXPECT_EQ(answer->log_probabilities[0].token_id(), 7U);
}

}  // namespace
}  // namespace docmem::client
