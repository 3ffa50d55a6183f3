#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "adapter_store/archive_layout.h"
#include "adapter_store/archive_reader.h"
#include "adapter_store/archive_writer.h"
#include "adapter_store/testing/adapter_store_fixture.h"
#include "gtest/gtest.h"

namespace docmem::store {
namespace {

using store_test::AdapterOf;
using store_test::AdapterStoreTest;
using store_test::CacheOf;
using store_test::Hash;
using store_test::Ingest;
using store_test::Key;
using store_test::SpecOf;

class RecordingSink : public ArchiveSink {
 public:
  absl::Status OnManifest(const ArchiveManifest& read) override {
    manifest = read;
    return absl::OkStatus();
  }
  absl::Status OnPart(const ArchivePart& part, std::string bytes) override {
    names.push_back(part.file->name);
    parts.push_back(std::move(bytes));
    return absl::OkStatus();
  }

  ArchiveManifest manifest;
  std::vector<std::string> names;
  std::vector<std::string> parts;
};

absl::Status Read(std::string_view archive, RecordingSink& sink, size_t piece = 7) {
  ArchiveReader reader(&sink);
  for (; !archive.empty(); archive.remove_prefix(std::min(piece, archive.size()))) {
    absl::Status status = reader.Take(archive.substr(0, piece));
    if (!status.ok()) return status;
  }
  return reader.Finish();
}

absl::Status Read(std::string_view archive) {
  RecordingSink sink;
  return Read(archive, sink);
}

class ArchiveTest : public AdapterStoreTest {
 protected:
  void SetUp() override {
    AdapterStoreTest::SetUp();
    ASSERT_OK(Ingest(*store_, Key("a"), "the text", 1));
    ASSERT_OK(store_->PublishCaches(Key("a"), SpecOf("the text").text_sha256, {CacheOf(2, "")}));
    ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), 1, "first")));
    ASSERT_OK(store_->PublishAdapter(AdapterOf(Key("a"), 2, "second")));
    DocumentEdit edit;
    edit.title = "a \"title\"";
    edit.labels = Labels{{"k", "v"}};
    edit.evaluation = std::string("\0\xff", 2);
    ASSERT_OK(store_->UpdateDocument(Key("a"), 0, edit));
  }

  absl::StatusOr<std::string> Export(const std::string& id) {
    auto writer = ArchiveWriter::Open(store_.get(), Key(id), {{"name", "tiny"}});
    if (!writer.ok()) return writer.status();
    std::string archive;
    for (;;) {
      const absl::StatusOr<std::string_view> piece = (*writer)->Next();
      if (!piece.ok()) return piece.status();
      if (piece->empty()) return archive;
      archive += *piece;
    }
  }

  static std::string WithVersion(std::string archive, uint32_t version) {
    return archive.replace(kArchiveMagicBytes, 4, EncodeLength(version));
  }
};

TEST_F(ArchiveTest, WhatIsWrittenIsRead) {
  const auto archive = Export("a");
  ASSERT_OK(archive);
  RecordingSink sink;
  ASSERT_OK(Read(*archive, sink));
  const ArchiveManifest& manifest = sink.manifest;
  EXPECT_EQ(manifest.model, (std::map<std::string, std::string>{{"name", "tiny"}}));
  EXPECT_EQ(manifest.key, Key("a"));
  EXPECT_EQ(manifest.spec.title, "a \"title\"");
  EXPECT_EQ(manifest.spec.labels, (Labels{{"k", "v"}}));
  EXPECT_EQ(manifest.evaluation, std::string("\0\xff", 2));
  EXPECT_EQ(manifest.document_tokens, 90u);
  EXPECT_EQ(manifest.default_cache_id, Hash(1));
  EXPECT_EQ(manifest.current_adapter_version, 2u);
  ASSERT_EQ(manifest.adapters.size(), 2u);
  EXPECT_EQ(manifest.adapters[0].hash, Hash(1));
  EXPECT_EQ(manifest.adapters[1].version, 2u);
  EXPECT_EQ(sink.parts, (std::vector<std::string>{"the text", "{}", "first", "{}", "second",
                                                  "cache of the text", ""}));
  EXPECT_EQ(sink.names[0], "text.zst");
  EXPECT_EQ(sink.names[2], "adapter_model.safetensors");
}

TEST_F(ArchiveTest, PiecesOfAnySizeAreTheSame) {
  const auto archive = Export("a");
  ASSERT_OK(archive);
  for (const size_t piece : {size_t{1}, size_t{64}, archive->size()}) {
    RecordingSink sink;
    ASSERT_OK(Read(*archive, sink, piece));
    EXPECT_EQ(sink.parts.size(), 7u);
  }
}

TEST_F(ArchiveTest, ADamagedByteAnywhereIsRefused) {
  const auto archive = Export("a");
  ASSERT_OK(archive);
  for (size_t at = 0; at < archive->size(); ++at) {
    std::string damaged = *archive;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_EQ(ReasonOf(Read(damaged)), reason::kImportInvalid) << at;
  }
}

TEST_F(ArchiveTest, AFileThatIsTooShortOrTooLongIsRefused) {
  const auto archive = Export("a");
  ASSERT_OK(archive);
  for (size_t length = 0; length < archive->size(); ++length) {
    const absl::Status status = Read(archive->substr(0, length));
    EXPECT_EQ(ReasonOf(status), reason::kImportInvalid) << length;
    EXPECT_NE(status.message().find("cut off"), std::string::npos) << status;
  }
  EXPECT_EQ(ReasonOf(Read(*archive + "x")), reason::kImportInvalid);
}

TEST_F(ArchiveTest, AnotherVersionIsToldWithBothAndWhatToDo) {
  const auto archive = Export("a");
  ASSERT_OK(archive);
  const absl::Status newer = Read(WithVersion(*archive, 7).substr(0, kArchiveVersionBytes));
  EXPECT_EQ(ReasonOf(newer), reason::kImportInvalid);
  EXPECT_NE(newer.message().find("version 7, this docmemd reads version 1"), std::string::npos);
  EXPECT_NE(newer.message().find("newer"), std::string::npos);
  EXPECT_EQ(DetailsOf(newer).at("version"), "7");
  const absl::Status older = Read(WithVersion(*archive, 0));
  EXPECT_NE(older.message().find("older"), std::string::npos);
  EXPECT_NE(Read("{\"model\": {}}").message().find("no exported document"), std::string::npos);
}

TEST_F(ArchiveTest, ADocumentThatIsNotWholeIsNotExported) {
  EXPECT_EQ(ReasonOf(Export("b").status()), reason::kDocumentNotFound);
  ASSERT_OK(store_->BeginDocument(Key("b"), SpecOf("b"), 0));
  EXPECT_EQ(ReasonOf(Export("b").status()), reason::kDocumentNotReady);
  FlipByte(store_->GetDocument(Key("a"))->caches[0].file);
  EXPECT_EQ(ReasonOf(Export("a").status()), reason::kArtifactDamaged);
}

TEST_F(ArchiveTest, AnArtifactThatIsDeletedMeanwhileEndsTheExport) {
  auto writer = ArchiveWriter::Open(store_.get(), Key("a"), {});
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->Next());
  ASSERT_OK(store_->DeleteCache(Key("a"), Hash(1)));
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = (*writer)->Next().status();
  EXPECT_EQ(ReasonOf(status), reason::kRevisionMismatch);
}

// ---- The manifest alone ----

class ManifestTest : public ArchiveTest {
 protected:
  void SetUp() override {
    ArchiveTest::SetUp();
    RecordingSink sink;
    ASSERT_OK(Read(*Export("a"), sink));
    json_ = WriteManifest(sink.manifest);
  }

  std::string WhyNot(const std::string& part, const std::string& other) const {
    const std::string changed = absl::StrReplaceAll(json_, {{part, other}});
    EXPECT_NE(changed, json_) << part;
    const absl::Status status = ParseManifest(changed).status();
    EXPECT_EQ(ReasonOf(status), reason::kImportInvalid) << changed;
    return std::string(status.message());
  }

  std::string json_;
};

TEST_F(ManifestTest, ReadsWhatItWrites) {
  const auto parsed = ParseManifest(json_);
  ASSERT_OK(parsed);
  EXPECT_EQ(WriteManifest(*parsed), json_);
}

TEST_F(ManifestTest, FieldsThatAreMissingUnknownOrOfAnotherTypeAreNamed) {
  EXPECT_NE(WhyNot("\"pinned\":false", "\"pinned\":0").find("document pinned"), std::string::npos);
  EXPECT_NE(WhyNot("\"pinned\":false,", "").find("lacks pinned"), std::string::npos);
  EXPECT_NE(WhyNot("\"pinned\":false", "\"pinned\":false,\"more\":1").find("doesn't know"),
            std::string::npos);
  EXPECT_NE(WhyNot("\"document_tokens\":90", "\"document_tokens\":-1").find("fits"),
            std::string::npos);
  EXPECT_NE(WhyNot("\"document_tokens\":90", "\"document_tokens\":4294967296").find("fits"),
            std::string::npos);
  WhyNot("\"id\":\"a\"", "\"id\":\"../a\"");
  WhyNot("\"caches\":[", "\"caches\":{},\"x\":[");
  WhyNot("\"state\":\"ready\"", "\"state\":\"\"");
  WhyNot("}", "");
}

TEST_F(ManifestTest, WhatItNamesMustBeThereOnce) {
  EXPECT_NE(WhyNot("\"default_cache_id\":\"" + Hash(1), "\"default_cache_id\":\"" + Hash(9))
                .find("default cache"),
            std::string::npos);
  EXPECT_NE(
      WhyNot("\"current_adapter_version\":2", "\"current_adapter_version\":3").find("current"),
      std::string::npos);
  EXPECT_NE(WhyNot("\"state\":\"ready\"", "\"state\":\"stale\"").find("current"),
            std::string::npos);
  EXPECT_NE(WhyNot("\"version\":2", "\"version\":1").find("versions"), std::string::npos);
  EXPECT_NE(WhyNot("\"id\":\"" + Hash(2), "\"id\":\"" + Hash(1)).find("twice"), std::string::npos);
  EXPECT_NE(WhyNot("\"text_bytes\":8", "\"text_bytes\":9").find("two lengths"), std::string::npos);
}

}  // namespace
}  // namespace docmem::store
