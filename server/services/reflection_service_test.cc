#include "server/services/reflection_service.h"

#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/services/testing.h"

namespace docmem::server {
namespace {

using Request = ReflectionService::Request;
using Response = ReflectionService::Response;

std::vector<std::string> FilesOf(const Response& response) {
  std::vector<std::string> names;
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    EXPECT_TRUE(file.ParseFromString(bytes));
    names.push_back(file.name());
  }
  return names;
}

TEST(ReflectionService, AFileComesFirstAndThenWhateverItNeedsOnce) {
  Request request;
  request.set_file_containing_symbol("docmem.v1.QueryService.Ask");
  const std::vector<std::string> files = FilesOf(ReflectionService::Answer(request));
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0], "docmem/v1/query.proto");
  EXPECT_EQ(std::set<std::string>(files.begin(), files.end()).size(), files.size());
  EXPECT_NE(std::find(files.begin(), files.end(), "docmem/v1/common.proto"), files.end());
  request.set_file_by_filename("docmem/v1/common.proto");
  EXPECT_EQ(FilesOf(ReflectionService::Answer(request))[0], "docmem/v1/common.proto");
}

TEST(ReflectionService, WhatIsNotThereIsAnErrorInTheResponse) {
  Request request;
  EXPECT_EQ(ReflectionService::Answer(request).error_response().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_host("h");
  request.set_file_by_filename("/etc/passwd");
  const Response response = ReflectionService::Answer(request);
  EXPECT_EQ(response.error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(response.valid_host(), "h");
  EXPECT_EQ(response.original_request().file_by_filename(), "/etc/passwd");
  request.mutable_file_containing_extension()->set_containing_type("docmem.v1.Document");
  EXPECT_TRUE(ReflectionService::Answer(request).has_error_response());
}

TEST(ReflectionService, OneStreamAnswersOneRequestAfterTheOther) {
  TestServer server;
  auto stub = grpc::reflection::v1alpha::ServerReflection::NewStub(server.channel);
  grpc::ClientContext context;
  const auto stream = stub->ServerReflectionInfo(&context);
  Request request;
  Response response;
  for (int i = 0; i < 3; ++i) {
    request.set_list_services("");
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.list_services_response().service_size(), 7);
    for (const auto& service : response.list_services_response().service()) {
      request.set_file_containing_symbol(service.name());
      EXPECT_FALSE(FilesOf(ReflectionService::Answer(request)).empty()) << service.name();
    }
  }
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace docmem::server
