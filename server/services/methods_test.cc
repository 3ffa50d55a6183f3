#include "server/interceptors/methods.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "docmem/v1/adapter.pb.h"
#include "docmem/v1/admin.pb.h"
#include "docmem/v1/collection.pb.h"
#include "docmem/v1/document.pb.h"
#include "docmem/v1/query.pb.h"
#include "docmem/v1/training.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace docmem::server {
namespace {

std::set<std::string> ServedPaths() {
  std::set<std::string> paths;
  for (const google::protobuf::FileDescriptor* file :
       {v1::Adapter::descriptor()->file(), v1::GetStatusRequest::descriptor()->file(),
        v1::Collection::descriptor()->file(), v1::Document::descriptor()->file(),
        v1::AskRequest::descriptor()->file(), v1::TrainingJob::descriptor()->file(),
        grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        paths.insert("/" + file->service(i)->full_name() + "/" +
                     file->service(i)->method(j)->name());
      }
    }
  }
  return paths;
}

TEST(Methods, TheTableHasEachMethodThatIsServedOnce) {
  std::set<std::string> listed;
  std::set<std::string> labels;
  for (const Method& method : AllMethods()) {
    EXPECT_TRUE(listed.insert(std::string(method.path)).second) << method.path;
    EXPECT_TRUE(labels.insert(std::string(method.label)).second) << method.label;
  }
  EXPECT_EQ(listed, ServedPaths());
}

TEST(Methods, OnlyStatusAndReflectionAnswerWhileTheDaemonLoads) {
  for (const Method& method : AllMethods()) {
    EXPECT_EQ(method.availability == Availability::kAlways,
              method.path == method::kGetStatus.path || method.path == method::kReflection.path);
  }
}

TEST(Methods, TextLeavesOnlyWithTheRightToWrite) {
  for (const Method* method : {&method::kGetText, &method::kExport, &method::kAdapterDownload}) {
    EXPECT_EQ(method->role, Role::kWrite) << method->label;
  }
}

}  // namespace
}  // namespace docmem::server
