#include "server/services/adapter_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "engine/formats/digest.h"
#include "server/errors/error.h"
#include "server/services/testing.h"

namespace docmem::server {
namespace {

using testing::ElementsAre;

class AdapterServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    server_.Serve();
    server_.Publish("d1", {"c1"});
  }

  // Sends messages until one is refused.
  grpc::Status Upload(const std::vector<v1::UploadAdapterRequest>& messages) {
    grpc::ClientContext context;
    v1::Adapter adapter;
    auto writer = stub_->Upload(&context, &adapter);
    for (const auto& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  static v1::UploadAdapterRequest Header(const std::string& document) {
    v1::UploadAdapterRequest message;
    message.mutable_header()->set_document(document);
    return message;
  }
  static v1::UploadAdapterRequest File(const std::string& name, uint64_t bytes) {
    v1::UploadAdapterRequest message;
    message.mutable_file()->set_name(name);
    message.mutable_file()->set_size_bytes(bytes);
    return message;
  }
  static v1::UploadAdapterRequest Chunk(const std::string& bytes) {
    v1::UploadAdapterRequest message;
    message.set_chunk(bytes);
    return message;
  }
  static v1::UploadAdapterRequest End(uint64_t bytes, const std::string& sha256) {
    v1::UploadAdapterRequest message;
    message.mutable_end()->set_total_bytes(bytes);
    message.mutable_end()->set_sha256(sha256);
    return message;
  }

  TestServer server_;
  std::unique_ptr<v1::AdapterService::Stub> stub_ = v1::AdapterService::NewStub(server_.channel);
};

// There is no intake behind the service here, so each of these must be refused before it is asked.
TEST_F(AdapterServiceTest, AnUploadWithoutItsPartsInOrderPublishesNothing) {
  const auto header = Header("d1");
  const auto file = File("adapter_config.json", 2);
  EXPECT_EQ(ReasonOf(Upload({})), "STREAM_INCOMPLETE");
  EXPECT_EQ(ReasonOf(Upload({header, file, Chunk("{}")})), "STREAM_INCOMPLETE");
  EXPECT_EQ(ReasonOf(Upload({file})), "STREAM_INCOMPLETE");
  EXPECT_EQ(ReasonOf(Upload({header, header})), "STREAM_INCOMPLETE");
  EXPECT_EQ(ReasonOf(Upload({header, Chunk("{}")})), "STREAM_INCOMPLETE");
  EXPECT_EQ(ReasonOf(Upload({header, file, Chunk("{"), End(1, engine::Sha256Hex("{"))})),
            "STREAM_INCOMPLETE");
  EXPECT_EQ(ReasonOf(Upload({header, {}})), "STREAM_INCOMPLETE");
}

TEST_F(AdapterServiceTest, AnUploadMustBeWhatItsEndSays) {
  const auto header = Header("d1");
  const auto file = File("adapter_config.json", 2);
  EXPECT_EQ(ReasonOf(Upload({header, file, Chunk("{}}")})), "CHECKSUM_MISMATCH");
  EXPECT_EQ(FieldOf(Upload({header, file, Chunk("{}"), End(3, engine::Sha256Hex("{}"))})),
            "end.total_bytes");
  EXPECT_EQ(FieldOf(Upload({header, file, Chunk("{}"), End(2, engine::Sha256Hex("{{"))})),
            "end.sha256");
}

TEST_F(AdapterServiceTest, FilesThatAreNoAdapterAreRefusedByName) {
  const auto header = Header("d1");
  EXPECT_EQ(FieldOf(Upload({header, File("../adapter_config.json", 1)})), "file.name");
  const grpc::Status pickled = Upload({header, File("adapter_model.bin", 1)});
  EXPECT_EQ(pickled.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(ReasonOf(pickled), "ADAPTER_UNSUPPORTED");
  EXPECT_EQ(ReasonOf(Upload({header, File("adapter_model.safetensors", uint64_t{2} << 30)})),
            "LIMIT_EXCEEDED");
  const auto empty = File("README.md", 0);
  EXPECT_EQ(ReasonOf(Upload({header, empty, empty})), "ADAPTER_INVALID");
  EXPECT_EQ(FieldOf(Upload({Header("")})), "document");
}

TEST_F(AdapterServiceTest, AnOpenUploadEndsWithTheDaemonAtItsDeadlineAndWithItsClient) {
  const auto wait_for_calls = [this](size_t count) {
    while (server_.open_calls.count() != count) absl::SleepFor(absl::Milliseconds(1));
  };
  v1::Adapter adapter;
  // Often, to meet the moment at which the call is known but its handler hasn't gone on yet.
  for (int round = 0; round < 50; ++round) {
    grpc::ClientContext context;
    auto writer = stub_->Upload(&context, &adapter);
    writer->Write(Header("d1"));
    while (server_.open_calls.count() != 1) std::this_thread::yield();
    server_.open_calls.CutAll(Error(absl::StatusCode::kUnavailable, reason::kShuttingDown, "stop"));
    EXPECT_EQ(ReasonOf(writer->Finish()), "SHUTTING_DOWN");
    wait_for_calls(0);
  }
  {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    auto writer = stub_->Upload(&context, &adapter);
    writer->Write(Header("d1"));
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    wait_for_calls(0);
  }
  {
    grpc::ClientContext context;
    auto writer = stub_->Upload(&context, &adapter);
    writer->Write(Header("d1"));
    wait_for_calls(1);
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
    wait_for_calls(0);
  }
}

TEST_F(AdapterServiceTest, ADownloadGivesTheFilesAndTheirDigest) {
  const std::string content(3 << 20, 'x');
  server_.PublishAdapter("d1", content.substr(0, 64));
  store::AdapterPublication publication;
  publication.document = {"default", "d1"};
  publication.spec.hash = engine::Sha256Hex(content);
  publication.files = {
      store::FileFromMemory("adapter_model.safetensors", std::as_bytes(std::span(content)))};
  publication.packed = store::FileFromMemory("packed", std::as_bytes(std::span(content)));
  ASSERT_TRUE(server_.store->PublishAdapter(publication).ok());

  grpc::ClientContext context;
  v1::DownloadAdapterRequest request;
  request.set_document("d1");
  auto reader = stub_->Download(&context, request);
  std::string bytes;
  v1::DownloadAdapterResponse part;
  ASSERT_TRUE(reader->Read(&part));
  EXPECT_EQ(part.file().name(), "adapter_model.safetensors");
  EXPECT_EQ(part.file().size_bytes(), content.size());
  while (reader->Read(&part) && !part.chunk().empty()) bytes += part.chunk();
  EXPECT_EQ(bytes, content);
  EXPECT_EQ(part.end().total_bytes(), content.size());
  EXPECT_EQ(part.end().sha256(), engine::Sha256Hex(content));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(AdapterServiceTest, VersionsAreListedChosenAndDeleted) {
  server_.PublishAdapter("d1", "one");
  server_.PublishAdapter("d1", "two");
  v1::ListAdaptersRequest list;
  list.set_document("d1");
  v1::ListAdaptersResponse listed;
  grpc::ClientContext c1;
  ASSERT_TRUE(stub_->List(&c1, list, &listed).ok());
  ASSERT_EQ(listed.adapters_size(), 2);
  EXPECT_EQ(listed.adapters(0).version(), 2U);
  EXPECT_TRUE(listed.adapters(0).current());
  EXPECT_EQ(listed.adapters(0).scope(), v1::ADAPTER_SCOPE_FROM_BRIDGE);
  EXPECT_EQ(listed.adapters(0).modules(0).rank(), 8U);

  v1::DeleteAdapterRequest remove;
  remove.set_document("d1");
  remove.set_version(2);
  v1::DeleteAdapterResponse removed;
  grpc::ClientContext c2;
  EXPECT_EQ(ReasonOf(stub_->Delete(&c2, remove, &removed)), "ADAPTER_IS_CURRENT");

  v1::SetCurrentAdapterRequest choose;
  choose.set_document("d1");
  choose.set_version(1);
  v1::SetCurrentAdapterResponse chosen;
  grpc::ClientContext c3;
  ASSERT_TRUE(stub_->SetCurrent(&c3, choose, &chosen).ok());
  EXPECT_EQ(chosen.previous_version(), 2U);
  EXPECT_EQ(chosen.current_version(), 1U);

  grpc::ClientContext c4;
  ASSERT_TRUE(stub_->Delete(&c4, remove, &removed).ok());
  EXPECT_TRUE(removed.deleted());
  EXPECT_THAT(server_.residency.notes(), ElementsAre("forget d1 v2"));
  grpc::ClientContext c5;
  EXPECT_EQ(ReasonOf(stub_->Delete(&c5, remove, &removed)), "ADAPTER_NOT_FOUND");
  remove.set_allow_missing(true);
  grpc::ClientContext c6;
  EXPECT_TRUE(stub_->Delete(&c6, remove, &removed).ok());
}

TEST_F(AdapterServiceTest, ThePinsOfAPinnedDocumentFollowItsCurrentAdapter) {
  server_.PublishAdapter("d1", "one");
  ASSERT_TRUE(server_.store->UpdateDocument({"default", "d1"}, 0, {.pinned = true}).ok());
  v1::SetCurrentAdapterRequest choose;
  choose.set_document("d1");
  v1::SetCurrentAdapterResponse chosen;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->SetCurrent(&context, choose, &chosen).ok());
  EXPECT_THAT(server_.residency.notes(), ElementsAre("pin d1 0"));
}

}  // namespace
}  // namespace docmem::server
