// Whoever may use some collections learns nothing of the others.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "server/services/testing.h"

namespace docmem::server {
namespace {

using google::protobuf::FieldDescriptor;

// An admin of `law` and `absent`, of which only the first exists.
class LawyerAuthenticator final : public Authenticator {
 public:
  absl::StatusOr<Principal> Authenticate(const Credentials&) const override {
    return Principal{"lawyer", Role::kAdmin, AllowedCollections({"law", "absent"})};
  }
};

class CollectionsApartTest : public testing::Test {
 protected:
  CollectionsApartTest() {
    server_.Serve();
    EXPECT_TRUE(server_.store->CreateCollection("law", {}).ok());
    EXPECT_TRUE(server_.store->CreateCollection("news", {}).ok());
    server_.Publish("d", {"c"});
  }

  v1::ListCollectionsResponse List(uint32_t size, const std::string& token) {
    grpc::ClientContext context;
    v1::ListCollectionsRequest request;
    v1::ListCollectionsResponse response;
    request.set_page_size(size);
    request.set_page_token(token);
    listed_ = collections_->List(&context, request, &response);
    return response;
  }

  TestServer server_{std::make_unique<LawyerAuthenticator>()};
  std::unique_ptr<v1::CollectionService::Stub> collections_ =
      v1::CollectionService::NewStub(server_.channel);
  grpc::Status listed_;
};

// Fills in a collection and a document wherever a request names them. False: it names no
// collection.
bool NameCollection(const std::string& collection, google::protobuf::Message* message) {
  const auto& type = *message->GetDescriptor();
  const auto& fields = *message->GetReflection();
  const bool of_collections = type.file()->name() == "docmem/v1/collection.proto";
  bool named = false;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (field->name() == "collection" || (of_collections && field->name() == "name")) {
      fields.SetString(message, field, collection);
      named = true;
    } else if (field->name() == "document") {
      fields.SetString(message, field, "d");
    } else if (field->name() == "documents") {
      fields.AddString(message, field, "d");
    } else if (field->name() == "header" || field->name() == "memory") {
      named = NameCollection(collection, fields.MutableMessage(message, field)) || named;
    }
  }
  return named;
}

TEST_F(CollectionsApartTest, EveryMethodRefusesAForeignCollectionAsItRefusesAnAbsentOne) {
  std::set<std::string> without;
  google::protobuf::DynamicMessageFactory factory;
  for (const Method& method : AllMethods()) {
    const std::string path(method.path);
    const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
        absl::StrReplaceAll(path.substr(1), {{"/", "."}}));
    ASSERT_NE(descriptor, nullptr) << path;
    std::vector<std::string> messages;
    for (const std::string name : {"default", "news", "nowhere"}) {
      const std::unique_ptr<google::protobuf::Message> request(
          factory.GetPrototype(descriptor->input_type())->New());
      if (!NameCollection(name, request.get())) {
        without.insert(std::string(method.label));
        break;
      }
      const grpc::Status status =
          CallWithMessage(server_.channel, path, request->SerializeAsString());
      EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << path << " " << name;
      EXPECT_EQ(ReasonOf(status), "NOT_PERMITTED") << path;
      messages.push_back(absl::StrReplaceAll(status.error_message(), {{name, "NAME"}}));
    }
    EXPECT_EQ(std::set<std::string>(messages.begin(), messages.end()).size(),
              messages.empty() ? 0U : 1U)
        << path;
  }
  EXPECT_EQ(without, (std::set<std::string>{"Collection.List", "Training.Get", "Training.Watch",
                                            "Training.Cancel", "Query.Abort", "Admin.GetStatus",
                                            "Admin.ListResident", "Admin.Drain",
                                            "Reflection.ServerReflectionInfo"}))
      << "look whether a method without a collection keeps them apart, and add it here";
}

TEST_F(CollectionsApartTest, AnOwnCollectionThatIsNotThereIsSimplyNotFound) {
  grpc::ClientContext context;
  v1::GetCollectionRequest request;
  request.set_name("absent");
  v1::Collection response;
  const grpc::Status status = collections_->Get(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "COLLECTION_NOT_FOUND");
}

TEST_F(CollectionsApartTest, ListingShowsOwnCollectionsAndItsPageTokensNoOthers) {
  EXPECT_EQ(List(0, "").collections_size(), 1);
  ASSERT_TRUE(server_.store->CreateCollection("absent", {}).ok());
  const v1::ListCollectionsResponse first = List(1, "");
  ASSERT_EQ(first.collections_size(), 1);
  EXPECT_EQ(first.collections(0).name(), "absent");
  const v1::ListCollectionsResponse second = List(1, first.next_page_token());
  ASSERT_EQ(second.collections_size(), 1);
  EXPECT_EQ(second.collections(0).name(), "law");
  EXPECT_EQ(second.next_page_token(), "");
  List(1, "default");
  EXPECT_EQ(FieldOf(listed_), "page_token");
}

TEST_F(CollectionsApartTest, StatusAndResidentsTellNothingOfTheOthers) {
  for (const char* collection : {"default", "law"}) {
    ResidentMemory item;
    item.document = {collection, "d"};
    server_.residency.residents.push_back(item);
  }
  auto admin = v1::AdminService::NewStub(server_.channel);
  grpc::ClientContext first;
  v1::ListResidentResponse residents;
  ASSERT_TRUE(admin->ListResident(&first, {}, &residents).ok());
  ASSERT_EQ(residents.items_size(), 1);
  EXPECT_EQ(residents.items(0).collection(), "law");
  grpc::ClientContext second;
  v1::GetStatusResponse status;
  ASSERT_TRUE(admin->GetStatus(&second, {}, &status).ok());
  EXPECT_EQ(status.phase(), v1::GetStatusResponse::PHASE_SERVING);
  EXPECT_EQ(status.documents(), 0U);
  EXPECT_EQ(status.collections(), 0U);
  EXPECT_EQ(status.tiers_size(), 0);
}

TEST_F(CollectionsApartTest, RequestsOfOthersAreEndedOnlyByAnAdminOfAllCollections) {
  auto queries = v1::QueryService::NewStub(server_.channel);
  grpc::ClientContext context;
  v1::AbortRequest request;
  request.set_request_id("r");
  request.set_principal("reporter");
  v1::AbortResponse response;
  const grpc::Status status = queries->Abort(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace docmem::server
