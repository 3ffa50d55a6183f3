#include "client/adapter_client.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client/internal/chunks.h"
#include "client/testing/fake_daemon.h"

namespace docmem::client {
namespace {

using testing::FakeDaemon;
using testing::HeaderOf;

std::string Digest(const std::string& bytes) {
  internal::Sha256 digest;
  digest.Update(bytes);
  return digest.Hex();
}

class AdapterClientTest : public ::testing::Test {
 protected:
  AdapterClientTest() : folder_(::testing::TempDir() + "docmem_adapter_client_test") {
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  AdapterSource Write(const std::string& name, const std::string& content) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return {name, path};
  }

  AdapterClient Client() {
    return AdapterClient(*Connection::Open({.address = daemon_.address()}));
  }

  FakeDaemon daemon_;
  const std::string folder_;
};

TEST_F(AdapterClientTest, FilesAreAnnouncedSentAndClosedByOneDigest) {
  std::string order;
  std::string content;
  v1::StreamEnd end;
  std::string document;
  daemon_.handlers.upload = [&](grpc::ServerContext* context,
                                grpc::ServerReader<v1::UploadAdapterRequest>* reader,
                                v1::Adapter* adapter) {
    document = HeaderOf(*context, "docmem-document").value_or("");
    v1::UploadAdapterRequest request;
    while (reader->Read(&request)) {
      if (request.has_header()) order += "header ";
      if (request.has_file()) {
        order += request.file().name() + ":" + std::to_string(request.file().size_bytes()) + " ";
      }
      if (request.has_chunk()) content += request.chunk();
      if (request.has_end()) end = request.end();
    }
    adapter->set_version(3);
    return grpc::Status::OK;
  };
  const std::string weights(2'500'000, 'w');
  v1::AdapterHeader header;
  header.set_collection("law");
  header.set_document("d1");
  uint64_t sent_bytes = 0;
  const auto adapter = Client().Upload(
      header, {Write("adapter_config.json", "{}"), Write("adapter_model.safetensors", weights)},
      [&](uint64_t sent, uint64_t total) {
        sent_bytes = sent;
        EXPECT_EQ(total, 2'500'002U);
      });
  daemon_.Settle();
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_EQ(adapter->version(), 3U);
  EXPECT_EQ(order, "header adapter_config.json:2 adapter_model.safetensors:2500000 ");
  EXPECT_EQ(content, "{}" + weights);
  EXPECT_EQ(end.total_bytes(), 2'500'002U);
  EXPECT_EQ(end.sha256(), Digest("{}" + weights));
  EXPECT_EQ(sent_bytes, 2'500'002U);
  EXPECT_EQ(document, "law/d1");
}

TEST_F(AdapterClientTest, AFileThatIsNotThereIsNamed) {
  const auto adapter = Client().Upload({}, {{"adapter_config.json", folder_ + "/absent"}});
  EXPECT_TRUE(absl::IsNotFound(adapter.status()));
  EXPECT_NE(adapter.status().message().find("absent"), std::string::npos);
}

// Keeps what it gets.
class Collector final : public AdapterSink {
 public:
  absl::Status BeginFile(const v1::AdapterFile& file) override {
    content += "<" + file.name() + ">";
    return absl::OkStatus();
  }
  absl::Status Write(absl::string_view bytes) override {
    content.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  std::string content;
};

TEST_F(AdapterClientTest, ADownloadIsCheckedAgainstItsDigest) {
  std::string digest = Digest("abc");
  daemon_.handlers.download = [&](grpc::ServerContext*, const v1::DownloadAdapterRequest&,
                                  grpc::ServerWriter<v1::DownloadAdapterResponse>* writer) {
    v1::DownloadAdapterResponse response;
    for (const auto& [name, bytes] : std::vector<std::pair<std::string, std::string>>{
             {"adapter_config.json", "ab"}, {"adapter_model.safetensors", "c"}}) {
      response.mutable_file()->set_name(name);
      writer->Write(response);
      response.set_chunk(bytes);
      writer->Write(response);
    }
    response.mutable_end()->set_total_bytes(3);
    response.mutable_end()->set_sha256(digest);
    writer->Write(response);
    return grpc::Status::OK;
  };
  Collector collector;
  EXPECT_TRUE(Client().Download({}, &collector).ok());
  EXPECT_EQ(collector.content, "<adapter_config.json>ab<adapter_model.safetensors>c");
  daemon_.Settle();
  digest = Digest("abd");
  daemon_.Settle();
  EXPECT_TRUE(absl::IsDataLoss(Client().Download({}, &collector)));
}

}  // namespace
}  // namespace docmem::client
