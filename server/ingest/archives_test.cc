#include "server/ingest/archives.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_replace.h"
#include "adapter_store/archive_layout.h"
#include "adapter_store/archive_manifest.h"
#include "adapter_store/files/digest.h"
#include "engine/formats/digest.h"
#include "server/errors/error.h"
#include "server/runtime/cache_artifact.h"
#include "server/runtime/testing.h"

namespace docmem::server {
namespace {

const store::DocumentKey kOne{"default", "one"};
const std::string kInRhyme = "Answer in rhyme.";

// One data folder with its archives.
struct Side {
  ~Side() { parts.StopThreads(); }

  absl::StatusOr<std::string> Export(const store::DocumentKey& key) {
    auto writer = archives.Export(key);
    if (!writer.ok()) return writer.status();
    std::string archive;
    for (;;) {
      const auto piece = (*writer)->Next();
      if (!piece.ok()) return piece.status();
      if (piece->empty()) return archive;
      archive += *piece;
    }
  }

  absl::StatusOr<store::Document> Import(const std::string& archive,
                                         uint64_t max_bytes = uint64_t{1} << 30) {
    const auto incoming = archives.Import(
        {.key = {"default", ""}, .max_text_bytes = max_bytes, .max_adapter_bytes = max_bytes});
    if (absl::Status status = incoming->Take(archive); !status.ok()) return status;
    return incoming->Publish();
  }

  TestParts parts;
  AdapterIntake intake{TinyEngine(), parts.store.get(), &parts.memories, 64};
  Archives archives{{.engine = TinyEngine(),
                     .store = parts.store.get(),
                     .residency = &parts.memories,
                     .intake = &intake}};
};

// The archive with another manifest, and checksums that fit it.
std::string Changed(const std::string& archive, const std::string& part, const std::string& other) {
  const size_t at = store::kArchiveVersionBytes + store::kArchiveHeaderBytes;
  const uint32_t bytes =
      store::DecodeLength(std::string_view(archive).substr(store::kArchiveVersionBytes));
  const std::string manifest = absl::StrReplaceAll(archive.substr(at, bytes), {{part, other}});
  EXPECT_NE(manifest, archive.substr(at, bytes)) << part;
  const std::string body =
      archive.substr(0, store::kArchiveVersionBytes) +
      store::EncodeLength(static_cast<uint32_t>(manifest.size())) + store::Xxh3Hex(manifest) +
      manifest +
      archive.substr(at + bytes, archive.size() - at - bytes - store::kArchiveDigestBytes);
  return body + store::Sha256Hex(body);
}

class ArchivesTest : public testing::Test {
 protected:
  void SetUp() override {
    document_ = from_.parts.Publish("one", {500'000, 1'000'000});
    AdapterUpload upload;
    upload.document = kOne;
    upload.files = TinyAdapter("all-modules");
    const auto adapter = from_.intake.Publish(std::move(upload));
    ASSERT_TRUE(adapter.ok()) << adapter.status();
    adapter_ = *adapter;
    auto archive = from_.Export(kOne);
    ASSERT_TRUE(archive.ok()) << archive.status();
    archive_ = *std::move(archive);
  }

  void ExpectRefused(const std::string& archive, const char* reason) {
    const auto document = to_.Import(archive);
    EXPECT_EQ(store::ReasonOf(document.status()), reason) << document.status();
    EXPECT_EQ(to_.parts.store->Stats()->documents, 0U);
    EXPECT_EQ(to_.parts.store->Stats()->used_bytes, 0U);
  }

  Side from_;
  Side to_;
  store::Document document_;
  store::Adapter adapter_;
  std::string archive_;
};

TEST_F(ArchivesTest, RowsOfTheCopyAreThoseOfTheOriginal) {
  const auto copy = to_.Import(archive_);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->default_cache_id, document_.default_cache_id);
  ASSERT_EQ(copy->caches.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const store::CacheSpec& was = document_.caches[i].spec;
    const store::CacheSpec& is = copy->caches[i].spec;
    EXPECT_EQ(is.id, was.id);
    EXPECT_EQ(is.identity, was.identity);
    EXPECT_EQ(is.ratio_ppm, was.ratio_ppm);
    EXPECT_EQ(is.profile, was.profile);
    EXPECT_EQ(is.system_text_digest, was.system_text_digest);
    EXPECT_EQ(is.kept_tokens, was.kept_tokens);
    EXPECT_EQ(is.device_bytes, was.device_bytes);
    EXPECT_EQ(is.full_bytes, was.full_bytes);
    EXPECT_EQ(copy->caches[i].file.digest, document_.caches[i].file.digest);
  }
  const auto adapter = to_.parts.store->GetAdapter(kOne, 0);
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_EQ(adapter->spec.hash, adapter_.spec.hash);
  EXPECT_EQ(adapter->spec.description, adapter_.spec.description);
  EXPECT_EQ(adapter->packed.digest, adapter_.packed.digest);
}

TEST_F(ArchivesTest, AnotherModelIsRefusedByTheField) {
  const std::string digest = TinyEngine()->identity().weights_digest;
  const auto document = to_.Import(Changed(archive_, digest, std::string(64, '0')));
  EXPECT_TRUE(absl::IsFailedPrecondition(document.status()));
  EXPECT_EQ(store::DetailsOf(document.status()).at("field"), "weights_digest");
  ExpectRefused(Changed(archive_, "\"dtype\":", "\"d_type\":"), reason::kImportInvalid);
}

TEST_F(ArchivesTest, AnArchiveThatSaysOtherThanItsArtifactsIsRefused) {
  const std::string tokens = std::to_string(document_.document_tokens);
  ExpectRefused(Changed(archive_, "\"document_tokens\":" + tokens, "\"document_tokens\":1"),
                reason::kImportInvalid);
  ExpectRefused(Changed(archive_, document_.default_cache_id, std::string(64, '1')),
                reason::kImportInvalid);
  ExpectRefused(Changed(archive_, adapter_.spec.hash, std::string(64, '2')),
                reason::kImportInvalid);
  ExpectRefused(Changed(archive_, document_.spec.text_sha256, std::string(64, '3')),
                reason::kImportInvalid);
  ExpectRefused(Changed(archive_, "FROM_BRIDGE", "FROM_NOWHERE"), reason::kImportInvalid);
  ExpectRefused(Changed(archive_, "adapter_config.json", "other.json"), reason::kAdapterInvalid);
}

// A well-formed archive of a document `text` with a cache of `ingested`.
std::string Pair(Side& side, const std::string& text, const std::string& ingested,
                 bool retain_text) {
  const engine::Context context = TinyEngine()->EncodeContext("", text, 0);
  store::DocumentPublication publication;
  publication.key = {"default", "pair"};
  publication.spec.text_sha256 = engine::Sha256Hex(text);
  publication.spec.text_bytes = text.size();
  publication.document_tokens = static_cast<uint32_t>(context.ids.size() - context.head_tokens);
  if (retain_text) publication.text = text;
  publication.row = side.parts.store->BeginDocument(publication.key, publication.spec, 0)->row;
  publication.caches.push_back(CacheArtifact(*TinyEngine(), TinyCache(ingested, 500'000), ""));
  EXPECT_EQ(publication.caches[0].spec.context_tokens, context.ids.size());
  EXPECT_TRUE(side.parts.store->PublishDocument(publication).ok());
  const auto archive = side.Export(publication.key);
  EXPECT_TRUE(archive.ok()) << archive.status();
  EXPECT_TRUE(side.parts.store->DeleteDocument(publication.key, 0).ok());
  return archive.value_or("");
}

TEST_F(ArchivesTest, ACacheOfAnotherTextOfAsManyTokensIsRefused) {
  const std::string text = TinyDocument();
  const std::string other =
      absl::StrReplaceAll(text, {{"Line 3:", "Line 4:"}, {"Line 4:", "Line 3:"}});
  ASSERT_NE(text, other);
  ExpectRefused(Pair(from_, text, other, true), reason::kImportInvalid);
  EXPECT_TRUE(to_.Import(Pair(from_, text, text, true)).ok());
}

// Of document one, with a system text of its own.
store::NewCache CacheInRhyme() {
  const auto context = TinyEngine()->EncodeContext(kInRhyme, TinyDocument() + "one", 0);
  const auto ingestion = TinyEngine()->StartIngestion(context, {{.ratio_ppm = 1'000'000}});
  while (!ingestion->Step()) {
  }
  return CacheArtifact(*TinyEngine(), ingestion->TakeCaches().front(), kInRhyme);
}

TEST_F(ArchivesTest, ACacheWithASystemTextOfItsOwnComesAlongAndIsComparedWithTheText) {
  const store::NewCache cache = CacheInRhyme();
  const auto added = from_.parts.store->PublishCaches(kOne, document_.spec.text_sha256, {cache});
  ASSERT_TRUE(added.ok()) << added.status();
  const auto archive = from_.Export(kOne);
  ASSERT_TRUE(archive.ok()) << archive.status();
  ExpectRefused(Changed(*archive, kInRhyme, "Answer in prose."), reason::kImportInvalid);
  const auto imported = to_.Import(*archive);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const store::CacheSpec& spec = imported->caches.back().spec;
  EXPECT_EQ(spec.id, cache.spec.id);
  EXPECT_EQ(spec.system_text, kInRhyme);
  EXPECT_EQ(spec.system_text_digest, engine::Sha256Hex(kInRhyme));
  EXPECT_TRUE(to_.Export(kOne).ok());
}

TEST_F(ArchivesTest, ACacheThatCanNotBeComparedWithTheTextNeitherLeavesNorComes) {
  const std::string system_text =
      engine::Sha256Hex(TinyEngine()->prompt_format().default_system_text());
  ExpectRefused(Changed(archive_, system_text, std::string(64, '4')), reason::kImportInvalid);

  store::NewCache cache = CacheInRhyme();
  cache.spec.system_text.clear();  // as a registry of version 2 knew it
  const auto added = from_.parts.store->PublishCaches(kOne, document_.spec.text_sha256, {cache});
  ASSERT_TRUE(added.ok()) << added.status();
  const absl::Status refused = from_.Export(kOne).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(store::DetailsOf(refused).at("cache"), cache.spec.id);
  ASSERT_TRUE(from_.parts.store->DeleteCache(kOne, cache.spec.id).ok());
  EXPECT_TRUE(from_.Export(kOne).ok());
}

TEST_F(ArchivesTest, WithoutTheTextThereIsNothingToCompare) {
  const std::string text = TinyDocument();
  EXPECT_TRUE(to_.Import(Pair(from_, text, text, false)).ok());
}

TEST_F(ArchivesTest, WhatIsTooLargeIsRefusedBeforeItComes) {
  const auto document = to_.Import(archive_, 10);
  EXPECT_EQ(store::ReasonOf(document.status()), reason::kLimitExceeded);
  for (const store::Cache& cache : document_.caches) {
    const std::string bytes = "\"bytes\":" + std::to_string(cache.file.bytes);
    ExpectRefused(Changed(archive_, bytes, "\"bytes\":1099511627776"), reason::kLimitExceeded);
  }
}

}  // namespace
}  // namespace docmem::server
