#include "client/document_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "client/error.h"
#include "client/internal/chunks.h"
#include "client/testing/fake_clock.h"
#include "client/testing/fake_daemon.h"

namespace docmem::client {
namespace {

using grpc::StatusCode;
using testing::FakeClock;
using testing::FakeDaemon;
using testing::HeaderOf;
using testing::Refusal;

using IngestStream = grpc::ServerReaderWriter<v1::IngestResponse, v1::IngestRequest>;

std::string Digest(const std::string& bytes) {
  internal::Sha256 digest;
  digest.Update(bytes);
  return digest.Hex();
}

// What an ingestion sent.
struct Received {
  v1::IngestHeader header;
  std::vector<size_t> chunk_bytes;
  std::string text;
  v1::StreamEnd end;
  std::string document_header;
};

class DocumentClientTest : public ::testing::Test {
 protected:
  grpc::Status Receive(grpc::ServerContext* context, IngestStream* stream) {
    ++tries_;
    received_ = {};
    received_.document_header = HeaderOf(*context, "docmem-document").value_or("");
    v1::IngestRequest request;
    while (stream->Read(&request)) {
      if (request.has_header()) received_.header = request.header();
      if (request.has_chunk()) {
        received_.chunk_bytes.push_back(request.chunk().size());
        received_.text += request.chunk();
      }
      if (request.has_end()) received_.end = request.end();
    }
    return grpc::Status::OK;
  }

  static void SendResult(IngestStream* stream) {
    v1::IngestResponse response;
    response.mutable_progress()->set_phase(v1::BuildProgress::PHASE_RECEIVING);
    stream->Write(response);
    response.mutable_progress()->set_phase(v1::BuildProgress::PHASE_PREFILLING);
    stream->Write(response);
    response.mutable_result()->mutable_document()->set_id("d1");
    stream->Write(response);
  }

  void AcceptIngestions() {
    daemon_.handlers.ingest = [this](grpc::ServerContext* context, IngestStream* stream) {
      const grpc::Status status = Receive(context, stream);
      SendResult(stream);
      return status;
    };
  }

  absl::StatusOr<v1::IngestResult> Ingest(const v1::IngestHeader& header, const std::string& text,
                                          const BuildProgressFunction& progress = nullptr) {
    auto result = Client().Ingest(header, text, progress);
    daemon_.Settle();
    return result;
  }

  DocumentClient Client() {
    return DocumentClient(*Connection::Open({.address = daemon_.address(), .clock = clock_}));
  }

  FakeDaemon daemon_;
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::atomic<int> tries_ = 0;
  Received received_;
};

TEST_F(DocumentClientTest, ALongTextGoesInChunksAndIsClosedByItsDigest) {
  AcceptIngestions();
  std::string text;
  while (text.size() < 3'500'000) text += "Zwölf Boxkämpfer jagen Viktor. ";
  v1::IngestHeader header;
  header.set_document("d1");
  header.mutable_options()->set_title("Titel");
  const auto result = Ingest(header, text);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->document().id(), "d1");
  EXPECT_EQ(received_.header.options().title(), "Titel");
  EXPECT_EQ(received_.text, text);
  EXPECT_EQ(received_.chunk_bytes.size(), 4U);
  for (const size_t bytes : received_.chunk_bytes) EXPECT_LE(bytes, internal::kChunkBytes);
  EXPECT_EQ(received_.end.total_bytes(), text.size());
  EXPECT_EQ(received_.end.sha256(), Digest(text));
  EXPECT_EQ(received_.document_header, "default/d1");
}

TEST_F(DocumentClientTest, ADerivedIdIsKnownToRoutersToo) {
  AcceptIngestions();
  ASSERT_TRUE(Ingest({}, "abc").ok());
  EXPECT_EQ(received_.document_header, "default/ba7816bf8f01cfea414140de5dae2223");
  EXPECT_EQ(DerivedDocumentId("abc"), "ba7816bf8f01cfea414140de5dae2223");
}

TEST_F(DocumentClientTest, SendingIsToldByThisSideAndTheRestByTheDaemon) {
  AcceptIngestions();
  std::vector<v1::BuildProgress> seen;
  ASSERT_TRUE(Ingest({}, std::string(1'500'000, 'a'), [&](const v1::BuildProgress& progress) {
                seen.push_back(progress);
              }).ok());
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].phase(), v1::BuildProgress::PHASE_RECEIVING);
  EXPECT_EQ(seen[0].received_bytes(), internal::kChunkBytes);
  EXPECT_EQ(seen[1].fraction(), 1.0);
  EXPECT_EQ(seen[2].phase(), v1::BuildProgress::PHASE_PREFILLING);
}

TEST_F(DocumentClientTest, ARefusalInTheMiddleOfTheTextIsTheResult) {
  daemon_.handlers.ingest = [](grpc::ServerContext*, IngestStream* stream) {
    v1::IngestRequest request;
    stream->Read(&request);
    return ToStatus(Refusal{.code = StatusCode::ALREADY_EXISTS, .reason = "DOCUMENT_EXISTS"});
  };
  const auto result = Ingest({}, std::string(20'000'000, 'a'));
  EXPECT_TRUE(absl::IsAlreadyExists(result.status())) << result.status();
  EXPECT_EQ(DetailOf(result.status()).reason, "DOCUMENT_EXISTS");
}

TEST_F(DocumentClientTest, AnIngestionIsRepeatedUnlessItReplaces) {
  daemon_.handlers.ingest = [this](grpc::ServerContext* context, IngestStream* stream) {
    Receive(context, stream);
    if (tries_ < 3) return grpc::Status(StatusCode::UNKNOWN, "stream removed");
    SendResult(stream);
    return grpc::Status::OK;
  };
  EXPECT_TRUE(Ingest({}, "abc").ok());
  EXPECT_EQ(tries_, 3);
  EXPECT_EQ(received_.end.sha256(), Digest("abc"));
  tries_ = 0;
  v1::IngestHeader replace;
  replace.set_replace(true);
  replace.set_revision(2);
  EXPECT_TRUE(absl::IsUnavailable(Ingest(replace, "abc").status()));
  EXPECT_EQ(tries_, 1);
}

class ReceiveTextTest : public DocumentClientTest {
 protected:
  // Sends two chunks, then `end` if there is one, then ends with `status`.
  void Send(const std::optional<v1::StreamEnd>& end, const grpc::Status& status) {
    daemon_.handlers.get_text = [this, end, status](
                                    grpc::ServerContext*, const v1::GetTextRequest&,
                                    grpc::ServerWriter<v1::GetTextResponse>* writer) {
      ++tries_;
      v1::GetTextResponse response;
      for (const char* chunk : {"ab", "c"}) {
        response.set_chunk(chunk);
        writer->Write(response);
      }
      if (end) {
        *response.mutable_end() = *end;
        writer->Write(response);
      }
      return status;
    };
  }

  static v1::StreamEnd EndOf(const std::string& bytes) {
    v1::StreamEnd end;
    end.set_total_bytes(bytes.size());
    end.set_sha256(Digest(bytes));
    return end;
  }

  absl::Status Get(std::string* text) {
    return Client().GetText({}, [text](absl::string_view bytes) {
      text->append(bytes.data(), bytes.size());
      return absl::OkStatus();
    });
  }
};

TEST_F(ReceiveTextTest, ChunksThatFitTheirDigestAreTheText) {
  Send(EndOf("abc"), grpc::Status::OK);
  std::string text;
  EXPECT_TRUE(Get(&text).ok());
  EXPECT_EQ(text, "abc");
}

TEST_F(ReceiveTextTest, OtherBytesThanThoseSentAreDataLoss) {
  Send(EndOf("abd"), grpc::Status::OK);
  std::string text;
  EXPECT_TRUE(absl::IsDataLoss(Get(&text)));
}

TEST_F(ReceiveTextTest, AStreamThatBreaksIsNotRepeatedIntoTheSameSink) {
  Send(std::nullopt, grpc::Status::OK);
  std::string text;
  EXPECT_TRUE(absl::IsUnavailable(Get(&text)));
  EXPECT_EQ(tries_, 1);
}

TEST_F(ReceiveTextTest, ASinkThatFailsEndsTheCallWithItsStatus) {
  Send(EndOf("abc"), grpc::Status::OK);
  const absl::Status status = Client().GetText(
      {}, [](absl::string_view) { return absl::ResourceExhaustedError("disk full"); });
  EXPECT_EQ(status.message(), "disk full");
}

TEST_F(DocumentClientTest, OnlyCallsThatAreSafeToRepeatAreRepeated) {
  std::atomic<int> calls = 0;
  const grpc::Status lost(StatusCode::UNAVAILABLE, "connection reset");
  const auto lose = [&](auto*, const auto&, auto*) {
    ++calls;
    return lost;
  };
  daemon_.handlers.delete_document = lose;
  daemon_.handlers.update_document = lose;
  daemon_.handlers.get_document = lose;
  const auto count = [&](const auto& call) {
    calls = 0;
    EXPECT_FALSE(call().ok());
    return calls.load();
  };
  v1::DeleteDocumentRequest remove;
  EXPECT_EQ(count([&] { return Client().Delete(remove); }), 1);
  remove.set_allow_missing(true);
  EXPECT_EQ(count([&] { return Client().Delete(remove); }), 5);
  v1::UpdateDocumentRequest update;
  EXPECT_EQ(count([&] { return Client().Update(update); }), 5);
  update.set_revision(3);
  EXPECT_EQ(count([&] { return Client().Update(update); }), 1);
  EXPECT_EQ(count([&] { return Client().Get({}); }), 5);
}

}  // namespace
}  // namespace docmem::client
