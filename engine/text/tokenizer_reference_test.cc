// Agreement with the `tokenizers` library on the files that tests/reference/token_ids.py makes.
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/formats/json_fields.h"
#include "engine/formats/safetensors.h"
#include "engine/text/tokenizer.h"
#include "engine/text/unicode.h"

namespace docmem::engine {
namespace {

using Ids = std::vector<int32_t>;

const std::filesystem::path kFolder =
    std::filesystem::path(DOCMEM_SOURCE_DIR) / "tests/reference/tokenizers";

Json ReadJson(const std::filesystem::path& path) {
  return ParseJson(MappedFile::Open(path).text(), path.filename().string());
}

Ids ReadIds(const SafetensorsView& view, const char* name) {
  const TensorInfo& info = view.Get(name);
  const std::span<const std::byte> data = view.Data(info);
  Ids ids(data.size() / DTypeBytes(info.dtype));
  for (size_t i = 0; i < ids.size(); ++i) {
    int16_t narrow = 0;
    if (info.dtype == DType::kI16) {
      std::memcpy(&narrow, data.data() + 2 * i, 2);
      ids[i] = narrow;
    } else {
      std::memcpy(&ids[i], data.data() + 4 * i, 4);
    }
  }
  return ids;
}

// Lists that lie one behind the other, and where each ends.
std::vector<Ids> ReadLists(const SafetensorsView& view, const std::string& name) {
  const Ids flat = ReadIds(view, name.c_str());
  std::vector<Ids> lists;
  int32_t begin = 0;
  for (const int32_t end : ReadIds(view, (name + "_ends").c_str())) {
    lists.emplace_back(flat.begin() + begin, flat.begin() + end);
    begin = end;
  }
  return lists;
}

std::string Hash(const Ids& ids) {
  XXH64_canonical_t canonical;
  XXH64_canonicalFromHash(&canonical, XXH3_64bits(ids.data(), ids.size() * sizeof(int32_t)));
  std::string hex;
  for (const unsigned char byte : canonical.digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string Character(int point) {
  std::string text;
  AppendUtf8(static_cast<uint32_t>(point), &text);
  return text;
}

// Draws the strings of mixed_strings() in tests/reference/hard_strings.py once more.
class MixedStrings {
 public:
  explicit MixedStrings(const Json& json) : state_(json["seed"].get<uint64_t>()) {
    for (const Json& kind : json["kinds"]) {
      std::vector<std::string>& pieces = kinds_.emplace_back();
      for (const Json& entry : kind) {
        if (entry.is_string()) {
          pieces.push_back(entry);
        } else {
          for (int point = entry[0]; point <= entry[1].get<int>(); ++point) {
            pieces.push_back(Character(point));
          }
        }
      }
    }
  }

  std::string Next() {
    std::string text;
    for (size_t left = 1 + Below(16); left > 0; --left) {
      const std::vector<std::string>& kind = kinds_[Below(kinds_.size())];
      text += kind[Below(kind.size())];
    }
    return text;
  }

 private:
  // splitmix64
  size_t Below(size_t limit) {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return (mixed ^ (mixed >> 31)) % limit;
  }

  std::vector<std::vector<std::string>> kinds_;
  uint64_t state_;
};

class TokenizerReferenceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::filesystem::path file = kFolder / (std::string(GetParam()) + ".json");
    if (GetParam() == std::string("smollm2")) {
      const char* folder = std::getenv("DOCMEM_SMOLLM2");
      file = std::filesystem::path(folder == nullptr ? "" : folder) / "tokenizer.json";
      if (!std::filesystem::exists(file)) GTEST_SKIP() << "DOCMEM_SMOLLM2 names no model folder";
    }
    tokenizer_.emplace(Tokenizer::Load(file));
    ids_.emplace(
        SafetensorsFile::Open(kFolder / "ids" / (std::string(GetParam()) + ".safetensors")));
    golden_ = ReadJson(kFolder / "ids" / (std::string(GetParam()) + ".json"));
    strings_ = ReadJson(kFolder / "strings.json")["strings"].get<std::vector<std::string>>();
  }

  std::optional<Tokenizer> tokenizer_;
  std::optional<SafetensorsFile> ids_;
  Json golden_;
  std::vector<std::string> strings_;
};

TEST_P(TokenizerReferenceTest, TemplatesGetTheLibrarysIds) {
  const std::vector<Ids> expected = ReadLists(ids_->view(), "template");
  ASSERT_EQ(expected.size(), strings_.size());
  for (size_t i = 0; i < strings_.size(); ++i) {
    EXPECT_EQ(tokenizer_->EncodeTemplate(strings_[i]), expected[i]) << i << ": " << strings_[i];
  }
}

TEST_P(TokenizerReferenceTest, UsersTextGetsTheIdsOfTheFileWithoutAddedTokens) {
  std::vector<Ids> expected = ReadLists(ids_->view(), "template");
  const std::vector<Ids> user = ReadLists(ids_->view(), "user");
  const Ids differ = ReadIds(ids_->view(), "differ");
  ASSERT_EQ(differ.size(), user.size());
  ASSERT_FALSE(differ.empty());
  for (size_t i = 0; i < user.size(); ++i) expected[differ[i]] = user[i];
  for (size_t i = 0; i < strings_.size(); ++i) {
    const Ids ids = tokenizer_->EncodeUser(strings_[i]);
    EXPECT_EQ(ids, expected[i]) << i << ": " << strings_[i];
    for (const int32_t id : ids) EXPECT_FALSE(tokenizer_->IsAdded(id)) << strings_[i];
  }
}

TEST_P(TokenizerReferenceTest, DecodesAsTheLibraryDoes) {
  for (const Json& entry : golden_["random_decodings"]) {
    EXPECT_EQ(tokenizer_->Decode(entry["ids"].get<Ids>()),
              entry["text_without_special"].get<std::string>());
  }
  const std::vector<Ids> template_ids = ReadLists(ids_->view(), "template");
  for (size_t i = 0; i < strings_.size(); ++i) {
    const bool special = std::any_of(template_ids[i].begin(), template_ids[i].end(),
                                     [&](int32_t id) { return tokenizer_->IsSpecial(id); });
    if (special) continue;
    const Json& decoded = golden_["decoded"];
    const std::string key = std::to_string(i);
    EXPECT_EQ(tokenizer_->Decode(template_ids[i]),
              decoded.contains(key) ? decoded[key].get<std::string>() : strings_[i]);
  }
}

TEST_P(TokenizerReferenceTest, EveryAssignedCodePointGetsTheLibrarysIds) {
  constexpr int kBlock = 4096;
  std::map<int, std::vector<int32_t>> ids_by_block;
  for (const Json& range : ReadJson(kFolder / "assigned.json")) {
    for (int point = range[0]; point <= range[1].get<int>(); ++point) {
      const std::string c = Character(point);
      const Ids ids = tokenizer_->EncodeTemplate("a" + c + "b " + c + c + " 1" + c + "\n" + c);
      auto& block = ids_by_block[point / kBlock * kBlock];
      block.insert(block.end(), ids.begin(), ids.end());
    }
  }
  const Json& sweep = golden_["sweep"];
  ASSERT_EQ(ids_by_block.size(), sweep.size());
  for (const auto& [block, ids] : ids_by_block) {
    EXPECT_EQ(Hash(ids), sweep[std::to_string(block)].get<std::string>())
        << "code points from " << block;
  }
}

TEST_P(TokenizerReferenceTest, MixedStringsGetTheLibrarysIds) {
  const Json json = ReadJson(kFolder / "mixed.json");
  MixedStrings strings(json);
  const size_t block = json["block"];
  const Json& golden = golden_["mixed"];
  ASSERT_EQ(golden["template"].size() * block, json["count"].get<size_t>());
  ASSERT_EQ(golden["user"].size(), golden["template"].size());
  for (size_t i = 0; i < golden["template"].size(); ++i) {
    Ids as_template, as_user;
    for (size_t left = block; left > 0; --left) {
      const std::string text = strings.Next();
      for (const int32_t id : tokenizer_->EncodeTemplate(text)) as_template.push_back(id);
      for (const int32_t id : tokenizer_->EncodeUser(text)) as_user.push_back(id);
    }
    EXPECT_EQ(Hash(as_template), golden["template"][i].get<std::string>()) << "block " << i;
    EXPECT_EQ(Hash(as_user), golden["user"][i].get<std::string>()) << "block " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, TokenizerReferenceTest,
                         testing::Values("smollm2-like", "llama3-like", "qwen-like", "flags",
                                         "smollm2"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace docmem::engine
