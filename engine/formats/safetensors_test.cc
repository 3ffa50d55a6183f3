#include "engine/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

namespace docmem::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string File(std::string json, size_t payload_bytes) {
  while (json.size() % 8 != 0) json += ' ';
  const uint64_t length = json.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + json +
         std::string(payload_bytes, 'p');
}

Error ErrorOf(const std::string& file) {
  try {
    SafetensorsView::Parse(Bytes(file), "x.safetensors");
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "was accepted: " << file;
  return Error(ErrorKind::kInternal, "", "");
}

std::string Entry(const char* name, const char* dtype, const char* shape, const char* offsets) {
  return std::string("\"") + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

Error ErrorOfTensor(const char* dtype, const char* shape, const char* offsets) {
  return ErrorOf(File("{" + Entry("a", dtype, shape, offsets) + "}", 16));
}

std::string Written(std::span<const TensorSource> tensors, const MetadataMap& metadata = {}) {
  std::string file;
  WriteSafetensors(tensors, metadata, [&](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return file;
}

TEST(SafetensorsTest, ReadsTensorsAndMetadata) {
  const std::string file =
      File("{\"__metadata__\":{\"format\":\"pt\"}," + Entry("b", "F32", "[2,1]", "[8,16]") + "," +
               Entry("a", "BF16", "[4]", "[0,8]") + "," + Entry("none", "F32", "[0,7]", "[16,16]") +
               "," + Entry("scalar", "I64", "[]", "[16,24]") + "}",
           24);
  const SafetensorsView view = SafetensorsView::Parse(Bytes(file), "x.safetensors");
  EXPECT_THAT(view.metadata(), ElementsAre(Pair("format", "pt")));
  EXPECT_EQ(view.tensors().size(), 4u);
  const TensorInfo& b = view.Get("b");
  EXPECT_EQ(b.dtype, DType::kF32);
  EXPECT_THAT(b.shape, ElementsAre(2, 1));
  EXPECT_EQ(view.Data(b).data(), Bytes(file).data() + view.header().payload_offset() + 8);
  EXPECT_EQ(view.Data(b).size(), 8u);
  EXPECT_TRUE(view.Data(view.Get("none")).empty());
  EXPECT_EQ(view.Data(view.Get("scalar")).size(), 8u);
  EXPECT_EQ(view.Find("c"), nullptr);
  EXPECT_THROW(view.Get("c"), Error);
}

TEST(SafetensorsTest, AFileWithoutTensorsIsAFile) {
  EXPECT_TRUE(SafetensorsView::Parse(Bytes(File("{}", 0)), "x").tensors().empty());
}

TEST(SafetensorsTest, EveryCutIsRefusedNamingTheFileAndTheMissingBytes) {
  const std::string file = File("{" + Entry("a", "F32", "[4]", "[0,16]") + "}", 16);
  for (size_t length = 0; length < file.size(); ++length) {
    const Error error = ErrorOf(file.substr(0, length));
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("x.safetensors")) << length;
  }
  EXPECT_STREQ(ErrorOf(file.substr(0, file.size() - 5)).what(),
               "a: x.safetensors is cut: 5 bytes are missing, the first of them in this tensor");
  EXPECT_THAT(ErrorOf(file.substr(0, 20)).what(), HasSubstr("bytes of its header are missing"));
}

TEST(SafetensorsTest, RefusesOffsetsThatDoNotFitTheShape) {
  EXPECT_THAT(ErrorOfTensor("F32", "[4]", "[16,0]").what(), HasSubstr("data_offsets"));
  EXPECT_THAT(ErrorOfTensor("F32", "[4]", "[0,8,16]").what(), HasSubstr("data_offsets"));
  EXPECT_STREQ(ErrorOfTensor("F32", "[3]", "[0,16]").what(),
               "a: has 16 bytes, but its shape and dtype make 12");
  EXPECT_THAT(ErrorOfTensor("F32", "[8]", "[0,32]").what(), HasSubstr("is cut"));
}

TEST(SafetensorsTest, RefusesShapesThatOverflow) {
  for (const char* shape : {"[4611686018427387904,4]", "[4294967296,4294967296,4294967296]",
                            "[9223372036854775807]", "[2,9223372036854775807,0]"}) {
    EXPECT_THAT(ErrorOfTensor("F32", shape, "[0,16]").what(), HasSubstr("no memory")) << shape;
  }
}

TEST(SafetensorsTest, RefusesWhatIsNoTensorDescription) {
  EXPECT_THAT(ErrorOfTensor("Q4", "[4]", "[0,16]").what(), HasSubstr("unknown dtype \"Q4\""));
  EXPECT_THAT(ErrorOfTensor("F32", "[-4]", "[0,16]").what(), HasSubstr("is -4"));
  EXPECT_THAT(ErrorOfTensor("F32", "[4.0]", "[0,16]").what(), HasSubstr("integer"));
  EXPECT_THAT(ErrorOfTensor("F32", "4", "[0,16]").what(), HasSubstr("array"));
  EXPECT_THAT(ErrorOfTensor("F32", "[4]", "[-1,16]").what(), HasSubstr("is -1"));
  EXPECT_THAT(ErrorOf(File("{\"a\":7}", 0)).what(), HasSubstr("an object"));
  EXPECT_THAT(ErrorOf(File("{\"a\":{}}", 0)).what(), HasSubstr("is missing"));
  EXPECT_THAT(ErrorOf(File("{\"__metadata__\":{\"k\":1}}", 0)).what(), HasSubstr("a string"));
  EXPECT_THAT(ErrorOf(File("[]", 0)).what(), HasSubstr("an object"));
}

TEST(SafetensorsTest, EveryByteBelongsToExactlyOneTensor) {
  const auto two = [](const char* offsets_a, const char* offsets_b) {
    return ErrorOf(File(
        "{" + Entry("a", "F32", "[2]", offsets_a) + "," + Entry("b", "F32", "[2]", offsets_b) + "}",
        20));
  };
  EXPECT_STREQ(two("[0,8]", "[4,12]").what(), "b: overlaps another tensor in x.safetensors");
  EXPECT_STREQ(two("[0,8]", "[0,8]").what(), "b: overlaps another tensor in x.safetensors");
  EXPECT_STREQ(two("[0,8]", "[12,20]").what(),
               "b: 4 bytes before it belong to no tensor in x.safetensors");
  EXPECT_STREQ(two("[4,12]", "[12,20]").what(),
               "a: 4 bytes before it belong to no tensor in x.safetensors");
  EXPECT_STREQ(two("[0,8]", "[8,16]").what(),
               "x.safetensors: has 4 bytes at its end that belong to no tensor");
}

TEST(SafetensorsTest, RefusesANameThatComesTwice) {
  EXPECT_THAT(ErrorOf(File("{" + Entry("a", "F32", "[2]", "[0,8]") + "," +
                               Entry("a", "F32", "[2]", "[8,16]") + "}",
                           16))
                  .what(),
              HasSubstr("\"a\" twice"));
}

TEST(SafetensorsTest, RefusesTensorsThatAreNotAlignedToTheirDtype) {
  const Error error = ErrorOf(File(
      "{" + Entry("a", "U8", "[2]", "[0,2]") + "," + Entry("b", "F32", "[1]", "[2,6]") + "}", 6));
  EXPECT_EQ(error.field(), "b");
  EXPECT_THAT(error.what(), HasSubstr("isn't aligned to its dtype F32"));
}

TEST(SafetensorsTest, RefusesImpossibleHeaderLengths) {
  std::string file = File("{}", 0);
  for (const uint64_t length : {uint64_t{100'000'001}, UINT64_MAX, uint64_t{1} << 62}) {
    std::memcpy(file.data(), &length, 8);
    EXPECT_THAT(ErrorOf(file).what(), HasSubstr("at most 100 MB")) << length;
  }
}

TEST(SafetensorsTest, DamagedHeadersAreRefusedAndNeverReadBeyondTheirEnd) {
  const std::string intact = File("{" + Entry("a", "F32", "[4]", "[0,16]") + "}", 16);
  for (size_t at = 0; at < intact.size() - 16; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = intact;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      try {
        const SafetensorsView view = SafetensorsView::Parse(Bytes(damaged), "x");
        for (const auto& [name, info] : view.tensors()) {
          EXPECT_EQ(view.Data(info).size(), 16u);
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      }
    }
  }
}

TEST(SafetensorsTest, TheHeaderAloneCanBeReadWithoutThePayload) {
  const std::string file = File("{" + Entry("a", "F32", "[4]", "[0,16]") + "}", 16);
  const size_t header_bytes = SafetensorsHeaderBytes(Bytes(file).first(8), "x");
  const auto header = SafetensorsHeader::Parse(Bytes(file).first(header_bytes), file.size(), "x");
  EXPECT_EQ(header.payload_offset(), header_bytes);
  EXPECT_EQ(header.tensors().at("a").end, 16u);
}

TEST(SafetensorsTest, OpensAMappedFile) {
  const std::string path = testing::TempDir() + "safetensors_test.safetensors";
  std::ofstream(path, std::ios::binary) << File("{" + Entry("a", "U8", "[3]", "[0,3]") + "}", 3);
  SafetensorsFile opened = SafetensorsFile::Open(path);
  const SafetensorsFile file = std::move(opened);
  EXPECT_EQ(file.view().Data(file.view().Get("a"))[2], std::byte{'p'});
  std::filesystem::remove(path);
}

TEST(SafetensorsWriterTest, WhatIsWrittenCanBeRead) {
  const std::vector<float> keys = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> positions = {7, 8, 9};
  const std::vector<TensorSource> tensors = {
      {{"keys", DType::kF32, {3, 2}}, std::as_bytes(std::span(keys))},
      {{"positions", DType::kI32, {3}}, std::as_bytes(std::span(positions))},
      {{"empty", DType::kBF16, {0, 64}}, {}}};
  const std::string file = Written(tensors, {{"z", "ä"}, {"a", "\"quoted\""}});
  const SafetensorsView view = SafetensorsView::Parse(Bytes(file), "x");
  EXPECT_EQ(view.header().payload_offset() % 64, 0u);
  EXPECT_THAT(view.metadata(), ElementsAre(Pair("a", "\"quoted\""), Pair("z", "ä")));
  EXPECT_EQ(view.Get("keys").begin, 0u);
  EXPECT_EQ(std::memcmp(view.Data(view.Get("keys")).data(), keys.data(), 24), 0);
  EXPECT_EQ(std::memcmp(view.Data(view.Get("positions")).data(), positions.data(), 12), 0);
  EXPECT_THAT(view.Get("empty").shape, ElementsAre(0, 64));
}

TEST(SafetensorsWriterTest, TheBytesAreFixed) {
  const std::vector<TensorSpec> specs = {{"b", DType::kI64, {1}}, {"a", DType::kU8, {2}}};
  const SafetensorsLayout layout = LayOutSafetensors(specs, {{"k", "v"}}, 8);
  EXPECT_EQ(layout.header.substr(8),
            R"({"__metadata__":{"k":"v"},"a":{"data_offsets":[8,10],"dtype":"U8","shape":[2]},)"
            R"("b":{"data_offsets":[0,8],"dtype":"I64","shape":[1]}})"
            "    ");
  EXPECT_EQ(layout.file_bytes, layout.header.size() + 10);
}

TEST(SafetensorsWriterTest, RefusesWhatCouldNotBeReadAgain) {
  const auto refused = [](std::vector<TensorSpec> specs) {
    EXPECT_THROW(LayOutSafetensors(specs, {}), Error);
  };
  refused({{"a", DType::kF32, {1}}, {"a", DType::kF32, {1}}});
  refused({{"", DType::kF32, {1}}});
  refused({{"__metadata__", DType::kF32, {1}}});
  refused({{"a", DType::kF32, {-1}}});
  refused({{"a", DType::kF32, {INT64_MAX, 2}}});
  refused({{"a", DType::kU8, {1}}, {"b", DType::kF32, {1}}});
  refused({{"\xff", DType::kU8, {1}}});
  const std::vector<TensorSource> short_data = {{{"a", DType::kF32, {1}}, {}}};
  EXPECT_THROW(Written(short_data), Error);
}

TEST(DTypeTest, NamesAndSizesBelongTogether) {
  EXPECT_EQ(DTypeName(DType::kBF16), "BF16");
  EXPECT_EQ(DTypeBytes(DType::kBF16), 2u);
  EXPECT_EQ(DTypeName(DType::kF8E5M2), "F8_E5M2");
  EXPECT_EQ(DTypeBytes(DType::kF8E5M2), 1u);
  EXPECT_EQ(DTypeBytes(DType::kI64), 8u);
}

}  // namespace
}  // namespace docmem::engine
