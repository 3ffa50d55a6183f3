#include "engine/artifacts/cache_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/artifacts/sealed_file.h"
#include "engine/artifacts/testing.h"
#include "engine/formats/digest.h"
#include "engine/formats/json_fields.h"

namespace docmem::engine {
namespace {

using testing::CacheShape;
using testing::FileOf;
using testing::RandomCache;
using testing::Share;

std::shared_ptr<const Cache> Read(const std::string& file) {
  return ReadCacheFile(Share(file), at::kCPU);
}

// Reads a damaged file; returns the blamed section, or nothing when it was accepted.
std::string Blamed(const std::string& file, ErrorKind kind = ErrorKind::kDataLoss) {
  try {
    Read(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.field();
  }
  return {};
}

// The file with a changed header whose own checksum is right.
std::string WithHeader(const std::string& file, const std::string& from, const std::string& to) {
  std::string header = file.substr(0, kCacheHeaderBytes);
  const size_t at = header.find(from);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(from.size(), to.size());
  header.replace(at, from.size(), to);
  return SealHeader(header) + file.substr(kCacheHeaderBytes);
}

TEST(CacheFileTest, WhatWasWrittenIsRead) {
  for (const CacheShape& shape :
       {CacheShape{}, CacheShape{.kept = {5, 3, 7}}, CacheShape{.dtype = at::kBFloat16},
        CacheShape{.head_tokens = 0, .kept = {0}}}) {
    const Cache cache = RandomCache(shape);
    const auto read = Read(FileOf(cache));
    EXPECT_EQ(read->identity(), cache.identity());
    EXPECT_EQ(read->layers(), cache.layers());
    EXPECT_EQ(read->kv_heads(), cache.kv_heads());
    EXPECT_EQ(read->next_position(), cache.next_position());
    EXPECT_TRUE(read->rows().keys.equal(cache.rows().keys));
    EXPECT_TRUE(read->rows().values.equal(cache.rows().values));
    EXPECT_TRUE(read->rows().positions.equal(cache.rows().positions));
    EXPECT_TRUE(read->rows().offsets.equal(cache.rows().offsets));
  }
}

TEST(CacheFileTest, TensorsAliasTheBytesAndKeepThemAlive) {
  SharedBytes file = Share(FileOf(RandomCache({})));
  const std::byte* begin = file.bytes.data();
  const std::weak_ptr<const void> owner = file.owner;
  auto cache = ReadCacheFile(std::move(file), at::kCPU);
  EXPECT_FALSE(owner.expired());
  const auto* keys = static_cast<const std::byte*>(cache->rows().keys.const_data_ptr());
  EXPECT_EQ(keys, begin + kCacheHeaderBytes);
  cache.reset();
  EXPECT_TRUE(owner.expired());
}

TEST(CacheFileTest, EqualRowsGiveEqualBytesAndOtherRowsOthers) {
  EXPECT_EQ(FileOf(RandomCache({}, 1)), FileOf(RandomCache({}, 1)));
  EXPECT_NE(FileOf(RandomCache({}, 1)), FileOf(RandomCache({}, 2)));
}

TEST(CacheFileTest, HeaderAndLengthAreKnownBeforeWriting) {
  const Cache cache = RandomCache({});
  const std::string file = FileOf(cache);
  const std::string header = CacheFileHeader(cache);
  EXPECT_EQ(header.size(), kCacheHeaderBytes);
  EXPECT_EQ(file.substr(0, header.size()), header);
  EXPECT_EQ(CacheFileBytes(cache), file.size());
}

TEST(CacheFileTest, TheHeaderIsSortedJsonWithoutGapsInThePayload) {
  const std::string header = CacheFileHeader(RandomCache({}));
  const Json json = ParseJson(std::string_view(header).substr(8), "header");
  EXPECT_EQ(json.dump(), header.substr(8, json.dump().size()));
  EXPECT_EQ(json["keys"]["data_offsets"][0], 0);
  EXPECT_EQ(json["keys"]["data_offsets"][1], json["values"]["data_offsets"][0]);
  EXPECT_EQ(json["keys"]["dtype"], "F32");
  EXPECT_EQ(json["positions"]["dtype"], "I32");
  EXPECT_EQ(json["offsets"]["shape"][0], 7);
  EXPECT_EQ(json["__metadata__"]["ratio_ppm"], "900000");
}

TEST(CacheFileTest, EveryTruncationIsDataLoss) {
  const std::string file = FileOf(RandomCache({}));
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    EXPECT_FALSE(Blamed(file.substr(0, bytes)).empty()) << bytes;
  }
  EXPECT_FALSE(Blamed(file + "x").empty());
}

TEST(CacheFileTest, EveryFlippedBitIsDataLossAndNamesItsSection) {
  const std::string file = FileOf(RandomCache({}));
  const size_t values = kCacheHeaderBytes + 30 * 8 * 4;
  const size_t offsets = values + 30 * 8 * 4;
  const size_t positions = offsets + 7 * 8;
  for (size_t byte = 0; byte < file.size(); ++byte) {
    std::string damaged = file;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << (byte % 8)));
    EXPECT_EQ(Blamed(damaged), byte < kCacheHeaderBytes ? "header"
                               : byte < values          ? "keys"
                               : byte < offsets         ? "values"
                               : byte < positions       ? "offsets"
                                                        : "positions")
        << byte;
  }
}

TEST(CacheFileTest, AWrongHeaderIsRefusedEvenWithTheRightChecksum) {
  const std::string file = FileOf(RandomCache({}));
  EXPECT_EQ(Blamed(WithHeader(file, "\"layers\":\"2\"", "\"layers\":\"4\"")), "layers");
  EXPECT_EQ(Blamed(WithHeader(file, "\"layers\":\"2\"", "\"layers\":\"0\"")), "layers");
  EXPECT_EQ(Blamed(WithHeader(file, "docmem-cache", "docmem-cachf")), "header");
  EXPECT_EQ(Blamed(WithHeader(file, "\"float32\",\"layers", "\"float16\",\"layers")), "keys");
  EXPECT_EQ(Blamed(WithHeader(file, "\"context_tokens\":\"40\"", "\"context_tokens\":\"39\"")),
            "positions");
  EXPECT_EQ(Blamed(WithHeader(file, "[30,8]", "[8,30]")), "values");
}

TEST(CacheFileTest, ANewerFormatIsRefusedByItsVersionNotCalledDamaged) {
  const std::string file = FileOf(RandomCache({}));
  const std::string newer =
      WithHeader(file, "\"format_version\":\"1\"", "\"format_version\":\"2\"");
  EXPECT_EQ(Blamed(newer, ErrorKind::kFailedPrecondition), "format_version");
}

TEST(CacheFileTest, TheIdentityIsReadFromTheHeaderAlone) {
  const Cache cache = RandomCache({});
  std::string header = CacheFileHeader(cache);
  EXPECT_EQ(ReadCacheFileIdentity(std::as_bytes(std::span(header))), cache.identity());
  header[100] ^= 1;
  EXPECT_THROW(ReadCacheFileIdentity(std::as_bytes(std::span(header))), Error);
}

}  // namespace
}  // namespace docmem::engine
