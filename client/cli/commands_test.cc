#include "client/cli/commands.h"

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

using client::testing::HeaderOf;
using grpc::StatusCode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CliTest, IngestSendsOptionsAndText) {
  v1::IngestHeader header;
  std::string text;
  daemon_.handlers.ingest =
      [&](grpc::ServerContext*,
          grpc::ServerReaderWriter<v1::IngestResponse, v1::IngestRequest>* io) {
        v1::IngestRequest request;
        text.clear();
        while (io->Read(&request)) {
          if (request.has_header()) header = request.header();
          if (request.has_chunk()) text += request.chunk();
        }
        v1::IngestResponse response;
        response.mutable_progress()->set_phase(v1::BuildProgress::PHASE_QUEUED);
        io->Write(response);
        v1::Document* document = response.mutable_result()->mutable_document();
        document->set_id("d1");
        document->add_caches()->set_ratio_ppm(900'000);
        response.mutable_result()->add_built_cache_ids("c1");
        io->Write(response);
        return grpc::Status::OK;
      };
  const std::string path = Write("a.txt", "Zwölf Boxkämpfer");
  EXPECT_EQ(Docmem({"ingest",        path,       "--id",      "d1",         "--collection",
                    "law",           "--ratio",  "0,0.9,1",   "--profile",  "compactor,knorm",
                    "--kv-dtype",    "bfloat16", "--title",   "T",          "--label",
                    "a=1",           "--label",  "b=x=y",     "--pin",      "--no-retain-text",
                    "--system-text", "",         "--replace", "--revision", "4",
                    "--output",      "json"}),
            kDone)
      << err_;
  EXPECT_EQ(text, "Zwölf Boxkämpfer");
  EXPECT_EQ(header.collection(), "law");
  EXPECT_EQ(header.document(), "d1");
  EXPECT_THAT(header.options().ratio_ppm(), ElementsAre(0, 900'000, 1'000'000));
  EXPECT_THAT(header.options().profiles(), ElementsAre(v1::PROFILE_COMPACTOR, v1::PROFILE_KNORM));
  EXPECT_EQ(header.options().kv_dtype(), v1::KV_DTYPE_BFLOAT16);
  EXPECT_EQ(header.options().title(), "T");
  EXPECT_EQ(header.options().labels().at("b"), "x=y");
  EXPECT_TRUE(header.options().pin());
  EXPECT_TRUE(header.options().has_retain_text());
  EXPECT_TRUE(header.options().has_system_text());
  EXPECT_TRUE(header.replace());
  EXPECT_EQ(header.revision(), 4U);
  const auto json = ParseJson(out_);
  EXPECT_EQ(json.fields().at("document").struct_value().fields().at("id").string_value(), "d1");

  EXPECT_EQ(Docmem({"ingest", "-"}, "from input"), kDone) << err_;
  EXPECT_EQ(text, "from input");
  EXPECT_FALSE(header.options().has_system_text());
  EXPECT_FALSE(header.options().has_retain_text());
  EXPECT_THAT(out_, HasSubstr("built 1 cache"));

  EXPECT_EQ(Docmem({"ingest", folder_ + "/absent"}), kFailed);
  EXPECT_THAT(err_, HasSubstr("absent"));
}

TEST_F(CliTest, ADetachedIngestionReturnsOnceTheTextHasArrived) {
  daemon_.handlers.ingest =
      [&](grpc::ServerContext* context,
          grpc::ServerReaderWriter<v1::IngestResponse, v1::IngestRequest>* io) {
        v1::IngestRequest request;
        while (io->Read(&request)) {
        }
        v1::IngestResponse response;
        response.mutable_progress()->set_phase(v1::BuildProgress::PHASE_QUEUED);
        io->Write(response);
        while (!context->IsCancelled()) std::this_thread::yield();
        return grpc::Status::CANCELLED;
      };
  EXPECT_EQ(Docmem({"ingest", "-", "--id", "d1", "--detach"}, "text"), kDone) << err_;
  EXPECT_EQ(out_, "default/d1: the daemon goes on\n");
}

TEST_F(CliTest, ListFollowsAllPages) {
  daemon_.handlers.list_documents = [](grpc::ServerContext*,
                                       const v1::ListDocumentsRequest& request,
                                       v1::ListDocumentsResponse* response) {
    const bool first = request.page_token().empty();
    response->add_documents()->set_id(first ? "a" : "b");
    if (first) response->set_next_page_token("next");
    EXPECT_EQ(request.labels().at("k"), "v");
    EXPECT_EQ(request.order(), v1::DOCUMENT_ORDER_CREATE_TIME);
    return grpc::Status::OK;
  };
  const std::vector<std::string> list = {"list", "--label", "k=v", "--order", "create-time"};
  EXPECT_EQ(Docmem(list), kDone) << err_;
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].rfind("DOCUMENT  STATE", 0), 0U) << lines[0];
  std::vector<std::string> json = list;
  json.insert(json.end(), {"--output", "json"});
  EXPECT_EQ(Docmem(json), kDone);
  EXPECT_EQ(ParseJson(out_).fields().at("documents").list_value().values_size(), 2);
}

TEST_F(CliTest, TextGoesOutByteForByteAndIsMadeSafeOnATerminal) {
  uint64_t total_bytes = 3;
  daemon_.handlers.get_text = [&](grpc::ServerContext*, const v1::GetTextRequest&,
                                  grpc::ServerWriter<v1::GetTextResponse>* writer) {
    v1::GetTextResponse response;
    response.set_chunk("a\x1b\n");
    writer->Write(response);
    response.mutable_end()->set_total_bytes(total_bytes);
    response.mutable_end()->set_sha256(
        "75d254b552616af563db83bd2240053433d7611a8104b586b3810ce15b5db495");
    writer->Write(response);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Docmem({"text", "d1"}), kDone) << err_;
  EXPECT_EQ(out_, "a\x1b\n");
  EXPECT_EQ(Docmem({"text", "d1", "--output", "json"}), kDone);
  EXPECT_EQ(ParseJson(out_).fields().at("text").string_value(), "a\x1b\n");
  terminal_ = true;
  EXPECT_EQ(Docmem({"text", "d1"}), kDone);
  EXPECT_EQ(out_, "a\\x1b\n");
  total_bytes = 4;
  EXPECT_EQ(Docmem({"text", "d1"}), kFailed);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(err_, HasSubstr("sent were 4 bytes"));
}

TEST_F(CliTest, UpdatesNameExactlyWhatTheyChange) {
  v1::UpdateDocumentRequest sent;
  daemon_.handlers.update_document = [&](grpc::ServerContext* context,
                                         const v1::UpdateDocumentRequest& request,
                                         v1::Document* response) {
    sent = request;
    *response = request.values();
    EXPECT_EQ(HeaderOf(*context, "docmem-document"), "default/d1");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Docmem({"update", "d1", "--title", "", "--label", "a=b", "--default-cache", "c",
                    "--delete-text", "--revision", "3"}),
            kDone);
  EXPECT_THAT(sent.update_mask().paths(),
              ElementsAre("title", "labels", "default_cache_id", "text_retained"));
  EXPECT_EQ(sent.revision(), 3U);
  EXPECT_EQ(Docmem({"pin", "d1"}), kDone);
  EXPECT_TRUE(sent.values().pinned());
  EXPECT_THAT(sent.update_mask().paths(), ElementsAre("pinned"));
  EXPECT_EQ(Docmem({"unpin", "d1"}), kDone);
  EXPECT_FALSE(sent.values().pinned());
  EXPECT_THAT(out_, HasSubstr("not pinned"));
}

TEST_F(CliTest, CollectionSettingsNameExactlyWhatTheyChange) {
  v1::UpdateCollectionRequest sent;
  daemon_.handlers.update_collection =
      [&](grpc::ServerContext*, const v1::UpdateCollectionRequest& request, v1::Collection*) {
        sent = request;
        return grpc::Status::OK;
      };
  EXPECT_EQ(Docmem({"collection", "update", "law", "--no-retain-text", "--default-ratio", "0.5",
                    "--max-bytes", "0", "--reset", "default_mode"}),
            kDone)
      << err_;
  EXPECT_THAT(sent.update_mask().paths(),
              ElementsAre("retain_text", "default_ratio_ppm", "limits.max_bytes", "default_mode"));
  EXPECT_FALSE(sent.settings().retain_text());
  EXPECT_EQ(sent.settings().default_ratio_ppm(), 500'000U);
}

TEST_F(CliTest, AnAdaptersFilesAreFoundByTheirNames) {
  std::vector<std::string> names;
  daemon_.handlers.upload = [&](grpc::ServerContext*,
                                grpc::ServerReader<v1::UploadAdapterRequest>* reader,
                                v1::Adapter* adapter) {
    v1::UploadAdapterRequest request;
    names.clear();
    while (reader->Read(&request)) {
      if (request.has_file()) names.push_back(request.file().name());
    }
    adapter->set_version(1);
    return grpc::Status::OK;
  };
  Write("a/adapter_config.json", "{}");
  Write("a/adapter_model.safetensors", "w");
  Write("a/adapter_model.bin", "p");
  Write("a/tokenizer.json", "t");
  EXPECT_EQ(Docmem({"adapter", "upload", "d1", folder_ + "/a"}), kDone) << err_;
  EXPECT_THAT(names, ElementsAre("adapter_config.json", "adapter_model.safetensors"));
  std::filesystem::remove(folder_ + "/a/adapter_model.safetensors");
  EXPECT_EQ(Docmem({"adapter", "upload", "d1", folder_ + "/a"}), kDone);
  EXPECT_THAT(names, ElementsAre("adapter_config.json", "adapter_model.bin"));
  std::filesystem::create_directories(folder_ + "/empty");
  EXPECT_EQ(Docmem({"adapter", "upload", "d1", folder_ + "/empty"}), kFailed);
  EXPECT_EQ(Docmem({"adapter", "upload", "d1", folder_ + "/absent"}), kFailed);
}

class DownloadTest : public CliTest {
 protected:
  void Serve(const std::string& name, const std::string& digest) {
    daemon_.handlers.download = [name, digest](
                                    grpc::ServerContext*, const v1::DownloadAdapterRequest&,
                                    grpc::ServerWriter<v1::DownloadAdapterResponse>* writer) {
      v1::DownloadAdapterResponse response;
      response.mutable_file()->set_name(name);
      writer->Write(response);
      response.set_chunk("abc");
      writer->Write(response);
      response.mutable_end()->set_total_bytes(3);
      response.mutable_end()->set_sha256(digest);
      writer->Write(response);
      return grpc::Status::OK;
    };
  }
  const std::string abc_ = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
};

TEST_F(DownloadTest, AFolderAppearsOnlyWhole) {
  const std::string folder = folder_ + "/new";
  Serve("adapter_config.json", std::string(64, '0'));
  EXPECT_EQ(Docmem({"adapter", "download", "d1", folder}), kFailed);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  Serve("adapter_config.json", abc_);
  EXPECT_EQ(Docmem({"adapter", "download", "d1", folder}), kDone) << err_;
  EXPECT_EQ(Read(folder + "/adapter_config.json"), "abc");
  EXPECT_EQ(Docmem({"adapter", "download", "d1", folder}), kFailed);
  EXPECT_THAT(err_, HasSubstr("exists already"));
}

TEST_F(DownloadTest, AHostileFileNameWritesNothing) {
  for (const char* name : {"../evil", "/tmp/evil", "..", ".hidden", ""}) {
    Serve(name, abc_);
    EXPECT_EQ(Docmem({"adapter", "download", "d1", folder_ + "/new"}), kFailed) << name;
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
  }
}

TEST_F(CliTest, AnExportAppearsOnlyWhole) {
  bool complete = false;
  daemon_.handlers.export_document = [&](grpc::ServerContext*, const v1::ExportDocumentRequest&,
                                         grpc::ServerWriter<v1::ExportDocumentResponse>* writer) {
    v1::ExportDocumentResponse response;
    response.set_chunk("abc");
    writer->Write(response);
    if (!complete) return grpc::Status(StatusCode::UNKNOWN, "stream removed");
    response.mutable_end()->set_total_bytes(3);
    response.mutable_end()->set_sha256(
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    writer->Write(response);
    return grpc::Status::OK;
  };
  const std::string path = folder_ + "/d1.docmem";
  EXPECT_EQ(Docmem({"export", "d1", path}), kFailed);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  complete = true;
  EXPECT_EQ(Docmem({"export", "d1", path}), kDone) << err_;
  EXPECT_EQ(Read(path), "abc");
}

TEST_F(CliTest, PairsForATrainingAreReadLineByLine) {
  const std::string bad = Write("bad.jsonl", R"({"question": "q", "answer": "a"})"
                                             "\n{}\n");
  EXPECT_EQ(Docmem({"train", "d1", "--qa", bad}), kFailed);
  EXPECT_THAT(err_, HasSubstr("bad.jsonl, line 2"));
  EXPECT_EQ(Docmem({"train", "d1", "--qa", Write("none.jsonl", "\n")}), kFailed);
  EXPECT_THAT(err_, HasSubstr("has no questions"));
  EXPECT_EQ(Docmem({"train", "d1", "--alpha", "much"}), kUsage);
}

TEST_F(CliTest, RpcsThatDoNotExistYetSayIt) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"train", "d1"}, {"jobs", "list"}, {"jobs", "show", "j", "--follow"}, {"route", "q"}}) {
    EXPECT_EQ(Docmem(arguments), kFailed);
    EXPECT_THAT(err_, HasSubstr("docmem: "));
  }
}

TEST_F(CliTest, ATokenComesFromTheFileOrTheVariable) {
  std::string authorization;
  daemon_.handlers.get_status = [&](grpc::ServerContext* context, const v1::GetStatusRequest&,
                                    v1::GetStatusResponse* response) {
    authorization = HeaderOf(*context, "authorization").value_or("");
    response->set_phase(v1::GetStatusResponse::PHASE_SERVING);
    return grpc::Status::OK;
  };
  variables_["DOCMEM_TOKEN"] = "from-variable";
  EXPECT_EQ(Docmem({"status"}), kDone);
  EXPECT_EQ(authorization, "Bearer from-variable");
  EXPECT_THAT(out_, HasSubstr("phase        serving"));
  EXPECT_EQ(Docmem({"status", "--token-file", Write("token", "from-file\n")}), kDone);
  EXPECT_EQ(authorization, "Bearer from-file");
  EXPECT_EQ(Docmem({"status", "--token-file", folder_ + "/absent"}), kFailed);
}

TEST_F(CliTest, ATokenGoesInPlainTextToThisMachineOnly) {
  variables_["DOCMEM_TOKEN"] = "secret-token";
  EXPECT_EQ(Docmem({"status", "--address", "daemon.example:7600"}), kUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("plain text"), HasSubstr("--insecure"),
                          Not(HasSubstr("secret-token"))));
  EXPECT_EQ(Docmem({"status", "--tls-cert", Write("cert", "c")}), kUsage);
  EXPECT_THAT(err_, HasSubstr("go together"));
  EXPECT_EQ(Docmem({"status", "--tls-ca", folder_ + "/absent"}), kFailed);
  EXPECT_THAT(err_, HasSubstr("absent"));
}

TEST_F(CliTest, ANewTokenFitsItsLine) {
  variables_.clear();
  EXPECT_EQ(Docmem({"token", "new", "alice", "--role", "write", "--collection", "a", "--collection",
                    "b", "--output", "json"}),
            kDone);
  const auto json = ParseJson(out_);
  const std::string token = json.fields().at("token").string_value();
  EXPECT_EQ(token.size(), 64U);
  EXPECT_THAT(json.fields().at("line").string_value(), HasSubstr("alice sha256:"));
  EXPECT_THAT(json.fields().at("line").string_value(), HasSubstr(" write a,b"));
  EXPECT_EQ(Docmem({"token", "new", "alice"}), kDone);
  EXPECT_THAT(out_, Not(HasSubstr(token)));
  EXPECT_THAT(out_, HasSubstr(" query *\n"));
}

}  // namespace
}  // namespace docmem::cli
