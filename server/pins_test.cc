#include "server/pins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/formats/digest.h"

namespace docmem::server {
namespace {

// Notes what is pinned and loaded.
class FakeResidency : public Residency {
 public:
  void SetPins(const store::Document& document, const store::Adapter*) override {
    pinned.push_back(document.key.id);
  }
  void Prefetch(const store::DocumentKey& document, const store::Cache& cache,
                const store::Adapter*, absl::AnyInvocable<void(absl::Status)> done) override {
    loaded.push_back(document.id + "/" + cache.spec.id);
    done(absl::ResourceExhaustedError("full"));
  }
  void Forget(const store::DocumentKey&, const store::Cache&) override {}
  void Forget(const store::Adapter&) override {}
  void ForgetDocument(const store::DocumentKey&) override {}
  bool IsLoaded(const store::DocumentKey&, const store::Cache&) const override { return false; }
  bool IsLoaded(const store::Adapter&) const override { return false; }
  std::vector<ResidentMemory> Residents() const override { return {}; }
  store::ResidentStats Stats() const override { return {}; }

  std::vector<std::string> pinned, loaded;
};

void PublishDocument(store::AdapterStore& store, const std::string& id, bool pinned) {
  static const std::string kBytes = "cache";
  store::DocumentPublication publication;
  publication.key = {"default", id};
  publication.spec = {.text_sha256 = engine::Sha256Hex(id), .text_bytes = 1, .pinned = pinned};
  const auto begun = store.BeginDocument(publication.key, publication.spec, 0);
  ASSERT_TRUE(begun.ok()) << begun.status();
  publication.row = begun->row;
  publication.caches.push_back(
      {.spec = {.id = engine::Sha256Hex(id)},
       .file = store::FileFromMemory("cache", std::as_bytes(std::span(kBytes)))});
  const auto published = store.PublishDocument(publication);
  ASSERT_TRUE(published.ok()) << published.status();
}

TEST(RestorePins, PinnedDocumentsAreLoadedAndWhatDoesNotFitIsNoFailure) {
  const std::string folder = testing::TempDir() + "docmem_pins_test";
  std::filesystem::remove_all(folder);
  store::AdapterStoreOptions options;
  options.folder = folder;
  auto store = store::AdapterStore::Open(std::move(options));
  ASSERT_TRUE(store.ok()) << store.status();
  PublishDocument(**store, "one", true);
  PublishDocument(**store, "two", false);
  PublishDocument(**store, "three", true);

  FakeResidency residency;
  Log log(LogLevel::kError);
  const auto pinned = RestorePins(**store, residency, log);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_EQ(*pinned, 2U);
  EXPECT_THAT(residency.pinned, testing::UnorderedElementsAre("one", "three"));
  EXPECT_THAT(residency.loaded,
              testing::UnorderedElementsAre("one/" + engine::Sha256Hex("one"),
                                            "three/" + engine::Sha256Hex("three")));
  store->reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace docmem::server
