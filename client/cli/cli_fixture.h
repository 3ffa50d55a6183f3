#pragma once

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stop_token>
#include <string>
#include <vector>

#include "client/cli/cli.h"
#include "client/testing/fake_daemon.h"

namespace docmem::cli {

// JSON as a generic value; fails the test where it isn't JSON.
inline google::protobuf::Struct ParseJson(const std::string& json) {
  google::protobuf::Struct value;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &value).ok()) << json;
  return value;
}

/// Keeps what is written and tells of every flush.
class FlushBuffer final : public std::stringbuf {
 public:
  std::function<void()> on_flush;

 private:
  int sync() override {
    if (on_flush) on_flush();
    return 0;
  }
};

/// Runs docmem in this process against a scripted daemon.
class CliTest : public ::testing::Test {
 protected:
  CliTest() : folder_(::testing::TempDir() + "docmem_cli_test") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    variables_["DOCMEM_ADDRESS"] = daemon_.address();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  int Docmem(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::istringstream in(input);
    FlushBuffer out_buffer;
    out_buffer.on_flush = on_flush_;
    std::ostream out(&out_buffer);
    std::ostringstream err;
    const Environment environment{.in = &in,
                                  .out = &out,
                                  .err = &err,
                                  .out_is_terminal = terminal_,
                                  .err_is_terminal = terminal_,
                                  .variable =
                                      [this](const char* name) {
                                        const auto found = variables_.find(name);
                                        return found == variables_.end() ? nullptr
                                                                         : found->second.c_str();
                                      },
                                  .stop = stop_.get_token(),
                                  .leave = [] {}};
    daemon_.Settle();
    const int code = cli::Run(arguments, environment);
    daemon_.Settle();
    out_ = out_buffer.str();
    err_ = err.str();
    return code;
  }

  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Answers "Yes, it does." and keeps the requests.
  void Answer() {
    daemon_.handlers.ask = [this](grpc::ServerContext*, const v1::AskRequest& request,
                                  grpc::ServerWriter<v1::AskResponse>* writer) {
      asked_.push_back(request);
      v1::AskResponse response;
      response.mutable_started()->set_request_id("r1");
      response.mutable_started()->set_mode(v1::MODE_BASE);
      response.mutable_started()->set_ratio_ppm(900'000);
      writer->Write(response);
      for (const char* text : {"Yes, ", "it does."}) {
        response.mutable_delta()->set_text(text);
        response.mutable_delta()->set_tokens(2);
        writer->Write(response);
      }
      response.mutable_finished()->set_answer_tokens(4);
      writer->Write(response);
      return grpc::Status::OK;
    };
  }

  client::testing::FakeDaemon daemon_;
  const std::string folder_;
  std::map<std::string, std::string> variables_;
  bool terminal_ = false;
  std::stop_source stop_;
  std::function<void()> on_flush_;  // of standard output
  std::vector<v1::AskRequest> asked_;
  std::string out_;
  std::string err_;
};

}  // namespace docmem::cli
