#include "server/services/prefetch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "docmem/v1/document.grpc.pb.h"
#include "docmem/v1/query.grpc.pb.h"
#include "server/errors/error.h"
#include "server/runtime/test_event.h"
#include "server/services/testing.h"

namespace docmem::server {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);

bool Eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

// A call that its test waits for, or ends.
struct Prefetching {
  grpc::ClientContext context;
  v1::PrefetchRequest request;
  v1::PrefetchResponse response;
  grpc::Status status;
  TestEvent ended;
};

class PrefetchTest : public testing::Test {
 protected:
  void SetUp() override {
    server_.Serve();
    for (int i = 0; i < kDocuments; ++i) server_.Publish(absl::StrCat("d", i), {"c"});
    server_.residency.HoldLoads();
  }
  void TearDown() override {
    server_.residency.EndLoads(absl::OkStatus());
    for (const auto& call : calls_) call->ended.Wait();
  }

  Prefetching& Start(const std::string& document, bool wait = true,
                     std::chrono::milliseconds deadline = 4 * kPatience) {
    Prefetching& call = *calls_.emplace_back(std::make_unique<Prefetching>());
    call.request.add_documents(document);
    call.request.set_wait(wait);
    call.context.set_deadline(std::chrono::system_clock::now() + deadline);
    documents_->async()->Prefetch(&call.context, &call.request, &call.response,
                                  [&call](grpc::Status status) {
                                    call.status = std::move(status);
                                    call.ended.Notify();
                                  });
    return call;
  }

  grpc::Status AskAbout(const std::string& document) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    v1::AskRequest request;
    request.mutable_memory()->set_document(document);
    request.mutable_prompt()->set_question("Which room is lit?");
    const auto answer = queries_->Ask(&context, request);
    v1::AskResponse part;
    while (answer->Read(&part)) {
    }
    return answer->Finish();
  }

  bool EventuallyHeld(size_t loads) {
    return Eventually([&] { return server_.residency.held_loads() == loads; });
  }
  bool EventuallyNoneOpen() {
    return Eventually([&] { return server_.open_calls.count() == 0; });
  }

  static constexpr int kDocuments = 2 * TestServer::kExecutorThreads;
  TestServer server_;
  std::unique_ptr<v1::DocumentService::Stub> documents_ =
      v1::DocumentService::NewStub(server_.channel);
  std::unique_ptr<v1::QueryService::Stub> queries_ = v1::QueryService::NewStub(server_.channel);
  std::vector<std::unique_ptr<Prefetching>> calls_;
};

TEST_F(PrefetchTest, MoreCallsWaitThanTheExecutorHasThreadsAndQuestionsAreAnswered) {
  for (int i = 0; i < kDocuments; ++i) Start(absl::StrCat("d", i));
  ASSERT_TRUE(EventuallyHeld(kDocuments));
  const grpc::Status answered = AskAbout("d0");
  EXPECT_TRUE(answered.ok()) << answered.error_message();
  for (const auto& call : calls_) EXPECT_FALSE(call->ended.HasHappened());
  server_.residency.EndLoads(absl::OkStatus());
  for (const auto& call : calls_) {
    call->ended.Wait();
    EXPECT_TRUE(call->status.ok()) << call->status.error_message();
    EXPECT_EQ(call->response.items_size(), 1);
  }
}

TEST_F(PrefetchTest, WithoutWaitItIsAnsweredWhileLoadsGoOn) {
  Prefetching& call = Start("d0", /*wait=*/false);
  call.ended.Wait();
  EXPECT_TRUE(call.status.ok()) << call.status.error_message();
  ASSERT_EQ(call.response.items_size(), 1);
  EXPECT_EQ(call.response.items(0).tier(), v1::TIER_DISK);
  EXPECT_EQ(server_.residency.held_loads(), 1U);
}

TEST_F(PrefetchTest, AClientThatLeavesIsLetGoWhileLoadsGoOn) {
  Prefetching& call = Start("d0");
  ASSERT_TRUE(EventuallyHeld(1));
  call.context.TryCancel();
  EXPECT_TRUE(EventuallyNoneOpen());
  EXPECT_EQ(server_.residency.held_loads(), 1U);
}

TEST_F(PrefetchTest, TheDeadlineLetsItGoWhileLoadsGoOn) {
  Prefetching& call = Start("d0", /*wait=*/true, std::chrono::milliseconds(100));
  call.ended.Wait();
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(EventuallyNoneOpen());
}

TEST_F(PrefetchTest, TheDaemonsEndLetsItGoWhileLoadsGoOn) {
  Prefetching& call = Start("d0");
  ASSERT_TRUE(EventuallyHeld(1));
  server_.open_calls.CutAll(
      Error(absl::StatusCode::kUnavailable, reason::kShuttingDown, "the daemon stops"));
  call.ended.Wait();
  EXPECT_EQ(ReasonOf(call.status), reason::kShuttingDown);
  EXPECT_EQ(server_.residency.held_loads(), 1U);
}

TEST_F(PrefetchTest, ALoadThatFailsIsTheAnswer) {
  Prefetching& call = Start("d0");
  ASSERT_TRUE(EventuallyHeld(1));
  server_.residency.EndLoads(absl::DataLossError("damaged"));
  call.ended.Wait();
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::DATA_LOSS);
}

}  // namespace
}  // namespace docmem::server
