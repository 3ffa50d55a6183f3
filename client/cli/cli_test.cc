#include "client/cli/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/cli_fixture.h"

namespace docmem::cli {
namespace {

using client::testing::Refusal;
using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using AskWriter = grpc::ServerWriter<v1::AskResponse>;

TEST_F(CliTest, HelpAndVersionNeedNoDaemon) {
  variables_.clear();
  EXPECT_EQ(Docmem({"--help"}), kDone);
  EXPECT_THAT(out_, HasSubstr("Usage: docmem COMMAND"));
  EXPECT_EQ(Docmem({"cache", "build", "-h"}), kDone);
  EXPECT_THAT(out_, HasSubstr("Usage: docmem cache build ID"));
  EXPECT_EQ(Docmem({"--version"}), kDone);
  EXPECT_EQ(out_.rfind("docmem ", 0), 0U);
}

TEST_F(CliTest, WrongUsageIsExitCode2) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"nonsense"},
                                             {"ask", "d1"},
                                             {"ask", "d1", "q", "--ratio", "0.9", "--cache", "c"},
                                             {"ask", "d1", "q", "--build"},
                                             {"ask", "--route", "d1", "q"},
                                             {"ask", "d1", "q", "--ratio", "0.1234567"},
                                             {"ask", "d1", "q", "--timeout", "-1"},
                                             {"ingest", "file", "--replace"},
                                             {"update", "d1"},
                                             {"adapter", "use", "d1"},
                                             {"list", "--output", "xml"},
                                             {"list", "--address", "nowhere"},
                                             {"token", "new", "a b"},
                                             {"token", "new", "a#b"}}) {
    EXPECT_EQ(Docmem(arguments), kUsage) << absl::StrJoin(arguments, " ");
    EXPECT_THAT(err_, HasSubstr("docmem: "));
    EXPECT_EQ(out_, "");
  }
  EXPECT_EQ(Docmem({"ask", "--output", "json"}), kUsage);
  EXPECT_EQ(
      ParseJson(err_).fields().at("error").struct_value().fields().at("reason").string_value(),
      "USAGE");
}

TEST_F(CliTest, AskSendsItsOptionsAndStreamsTheAnswer) {
  Answer();
  EXPECT_EQ(Docmem({"ask",
                    "d1",
                    "Does it?",
                    "--collection",
                    "law",
                    "--mode",
                    "base-kv-adapter-decode",
                    "--ratio",
                    "0.95",
                    "--profile",
                    "compactor",
                    "--build",
                    "--adapter",
                    "3",
                    "--adapter-scope",
                    "answer-only",
                    "--allow-adapter-mismatch",
                    "--max-tokens",
                    "40",
                    "--temperature",
                    "0.5",
                    "--top-p",
                    "0.9",
                    "--top-k",
                    "20",
                    "--seed",
                    "0",
                    "--stop",
                    "x",
                    "--stop",
                    "y",
                    "--priority",
                    "batch",
                    "--instruction",
                    "Be brief."}),
            kDone)
      << err_;
  EXPECT_EQ(out_, "Yes, it does.\n");
  EXPECT_EQ(err_, "");
  ASSERT_EQ(asked_.size(), 1U);
  const v1::AskRequest& request = asked_[0];
  EXPECT_EQ(request.memory().collection(), "law");
  EXPECT_EQ(request.memory().document(), "d1");
  EXPECT_EQ(request.memory().mode(), v1::MODE_BASE_KV_ADAPTER_DECODE);
  EXPECT_EQ(request.memory().ratio_ppm(), 950'000U);
  EXPECT_EQ(request.memory().profile(), v1::PROFILE_COMPACTOR);
  EXPECT_TRUE(request.memory().build_if_missing());
  EXPECT_EQ(request.memory().adapter_version(), 3U);
  EXPECT_EQ(request.memory().adapter_scope(), v1::ADAPTER_SCOPE_ANSWER_ONLY);
  EXPECT_TRUE(request.memory().allow_adapter_mismatch());
  EXPECT_EQ(request.prompt().question(), "Does it?");
  EXPECT_EQ(request.prompt().instruction(), "Be brief.");
  EXPECT_EQ(request.max_tokens(), 40U);
  EXPECT_EQ(request.priority(), v1::PRIORITY_BATCH);
  EXPECT_EQ(request.sampling().temperature(), 0.5);
  EXPECT_EQ(request.sampling().top_p(), 0.9);
  EXPECT_EQ(request.sampling().top_k(), 20U);
  EXPECT_TRUE(request.sampling().has_seed());
  EXPECT_THAT(request.stop(), ElementsAre("x", "y"));
}

TEST_F(CliTest, RatioZeroIsSelectedAndNoRatioIsNot) {
  Answer();
  EXPECT_EQ(Docmem({"ask", "d1", "q", "--ratio", "0"}), kDone);
  EXPECT_EQ(Docmem({"ask", "d1", "q"}), kDone);
  EXPECT_EQ(asked_[0].memory().cache_case(), v1::MemorySelection::kRatioPpm);
  EXPECT_EQ(asked_[1].memory().cache_case(), v1::MemorySelection::CACHE_NOT_SET);
  EXPECT_FALSE(asked_[1].sampling().has_seed());
}

TEST_F(CliTest, AskCanRouteAndReadTheQuestionFromInput) {
  Answer();
  EXPECT_EQ(Docmem({"ask", "--route", "-"}, "Does it?\n"), kDone) << err_;
  EXPECT_EQ(asked_[0].memory().document(), "");
  EXPECT_EQ(asked_[0].prompt().question(), "Does it?");
  EXPECT_EQ(Docmem({"ask", "d1", "-"}, "a\xff"), kFailed);
  EXPECT_THAT(err_, HasSubstr("standard input isn't valid UTF-8"));
  EXPECT_EQ(Docmem({"chat", "d1"}, "a\xff\nb\n"), kDone);
  EXPECT_THAT(err_, HasSubstr("isn't valid UTF-8"));
  EXPECT_EQ(asked_.back().prompt().question(), "b");
}

TEST_F(CliTest, AskGivesOneJsonObjectWithDefaultsPrinted) {
  Answer();
  EXPECT_EQ(Docmem({"--output", "json", "ask", "d1", "q"}), kDone);
  const auto json = ParseJson(out_);
  EXPECT_EQ(json.fields().at("answer").string_value(), "Yes, it does.");
  const auto& finished = json.fields().at("finished").struct_value().fields();
  EXPECT_EQ(finished.at("documentTokensPrefilled").number_value(), 0);
  EXPECT_EQ(finished.at("answerTokens").number_value(), 4);
  const auto& started = json.fields().at("started").struct_value().fields();
  EXPECT_EQ(started.at("ratioPpm").number_value(), 900'000);
  EXPECT_EQ(started.at("mode").string_value(), "MODE_BASE");
  EXPECT_EQ(json.fields().size(), 3U);
}

TEST_F(CliTest, OnATerminalAnAnswerIsSafeAndItsCostIsTold) {
  daemon_.handlers.ask = [](grpc::ServerContext*, const v1::AskRequest&, AskWriter* writer) {
    v1::AskResponse response;
    response.mutable_progress()->set_phase(v1::Progress::PHASE_QUEUED);
    response.mutable_progress()->set_queue_position(2);
    writer->Write(response);
    response.mutable_delta()->set_text("a\x1b]0;owned\x07");
    writer->Write(response);
    response.mutable_finished()->set_reason(v1::Finished::REASON_LENGTH);
    writer->Write(response);
    return grpc::Status::OK;
  };
  terminal_ = true;
  EXPECT_EQ(Docmem({"ask", "d1", "q"}), kDone);
  EXPECT_EQ(out_, "a\\x1b]0;owned\\x07\n");
  EXPECT_THAT(err_, HasSubstr("queued, 2 requests before this"));
  EXPECT_THAT(err_, HasSubstr("cut by its length"));
  EXPECT_THAT(err_, HasSubstr("0 document tokens prefilled"));
}

TEST_F(CliTest, ChatKeepsItsHistoryAndGoesOnAfterAFailure) {
  Answer();
  EXPECT_EQ(Docmem({"chat", "d1", "--output", "json"}, "one\n\ntwo\n/clear\nthree\n"), kDone);
  ASSERT_EQ(asked_.size(), 3U);
  EXPECT_EQ(asked_[0].prompt().history_size(), 0);
  ASSERT_EQ(asked_[1].prompt().history_size(), 1);
  EXPECT_EQ(asked_[1].prompt().history(0).question(), "one");
  EXPECT_EQ(asked_[1].prompt().history(0).answer(), "Yes, it does.");
  EXPECT_EQ(asked_[2].prompt().history_size(), 0);
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3U);
  for (const std::string& line : lines) {
    EXPECT_EQ(ParseJson(line).fields().at("answer").string_value(), "Yes, it does.");
  }
  daemon_.handlers.ask = [](grpc::ServerContext*, const v1::AskRequest&, AskWriter*) {
    return ToStatus(Refusal{.reason = "CONTEXT_TOO_LONG", .message = "too long"});
  };
  EXPECT_EQ(Docmem({"chat", "d1"}, "one\ntwo\n"), kDone);
  EXPECT_THAT(err_, HasSubstr("docmem: too long\n  reason: CONTEXT_TOO_LONG\ndocmem: too long"));
}

TEST_F(CliTest, ErrorsNameReasonFieldAndRetry) {
  daemon_.handlers.get_document = [](grpc::ServerContext*, const v1::GetDocumentRequest&,
                                     v1::Document*) {
    return ToStatus(Refusal{.code = StatusCode::RESOURCE_EXHAUSTED,
                            .reason = "QUEUE_FULL",
                            .message = "256 requests wait",
                            .field = "document",
                            .retry_delay = absl::Seconds(90)});
  };
  EXPECT_EQ(Docmem({"show", "d1"}), kFailed);
  EXPECT_EQ(err_,
            "docmem: 256 requests wait\n  reason: QUEUE_FULL\n  field: document\n"
            "  hint: try again in 90 s\n");
  EXPECT_EQ(Docmem({"show", "d1", "--output", "json"}), kFailed);
  EXPECT_EQ(out_, "");
  const auto error = ParseJson(err_).fields().at("error").struct_value();
  EXPECT_EQ(error.fields().at("code").string_value(), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(error.fields().at("reason").string_value(), "QUEUE_FULL");
  EXPECT_EQ(error.fields().at("message").string_value(), "256 requests wait");
  const auto& details = error.fields().at("details").struct_value().fields();
  EXPECT_EQ(details.at("field").string_value(), "document");
  EXPECT_EQ(details.at("retryDelaySeconds").number_value(), 90);
}

TEST_F(CliTest, AnAbsentDaemonIsNamedWithWhatToDo) {
  daemon_.Stop();
  EXPECT_EQ(Docmem({"status"}), kFailed);
  EXPECT_THAT(err_, HasSubstr(daemon_.address()));
  EXPECT_THAT(err_, HasSubstr("is docmemd running there?"));
}

TEST_F(CliTest, CtrlCAbortsTheQuestion) {
  std::string aborted;
  daemon_.handlers.ask = [](grpc::ServerContext* context, const v1::AskRequest&,
                            AskWriter* writer) {
    v1::AskResponse response;
    response.mutable_started()->set_request_id("r7");
    writer->Write(response);
    response.mutable_delta()->set_text("half");
    writer->Write(response);
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  daemon_.handlers.abort = [&](grpc::ServerContext*, const v1::AbortRequest& request,
                               v1::AbortResponse*) {
    aborted = request.request_id();
    return grpc::Status::OK;
  };
  on_flush_ = [this] { stop_.request_stop(); };
  EXPECT_EQ(Docmem({"ask", "d1", "q"}), kStopped);
  EXPECT_EQ(aborted, "r7");
  EXPECT_EQ(err_, "");
}

}  // namespace
}  // namespace docmem::cli
